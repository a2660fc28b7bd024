import { of, row, type Section, tests } from "./Facts.ts"

const trials = tests("packages/api/test/WorkflowTests.test.ts")
const real = tests("test/contract/WorkflowTests.test.ts")
const templated = tests("packages/api/test/WorkflowTemplates.test.ts")
const aggregated = tests("packages/api/test/WorkflowAggregates.test.ts")
const tutorial = tests("test/contract/WorkflowTutorial.test.ts")

const dry = trials(
  "a stored workflow is tried dry: steps within the process run, a destination is stood in for, delays take no time"
)
const mocked = trials("a mock is what a step comes to: an output, or an error that goes the way of errors")
const alone = trials("one step alone is tried with what its mocks say of others, and for each of a list")
const warned = tests("packages/api/test/Workflows.test.ts")(
  "names that a step's output does not have are taken with warnings, by every write and by a test"
)
const bounded = trials("without previews there are none; a test with too much of everything comes to an end")
const sampled = real("A workflow is tested with the last or a given request, and people see it without secrets")
const live = real("A live test sends once with the headers of a run and stores nothing")

const list = templated("a list has all of them, each with what it has to be given")
const draft = templated("${template.key} becomes a draft, and its sample goes through it")
const own = templated("without a source or a name it has neither, and its own")
const missing = templated("what it is not given is told, and makes nothing")

const saved = aggregated("a workflow and its source are made at once, and the workflow is changed by its id")
const acting = aggregated("actions are saved with it, and its steps name them by their refs")
const nothing = aggregated("when one part is refused, nothing is written")
const race = aggregated("of many that would make the same at once, one does, with all of it")

const input = [
  of("mode", live),
  of("trigger include_previews", bounded),
  of("request_id", sampled),
  of("step_id context context.*", alone),
  of("mocks mocks.*", mocked),
  of("steps edges", mocked)
]

export const workflowTrials: Section = {
  title: "Workflow tests, templates and aggregates",
  endpoints: [
    row("POST /workflows/{id}/test", dry),
    row("POST /workflows/test", mocked),
    row("GET /workflow-templates; GET /workflow-templates/{key}", list),
    row("POST /workflow-templates/{key}/instantiate", draft),
    row("PUT /workflows/aggregate", saved)
  ],
  fields: {
    WorkflowTestInput: input,
    UnsavedWorkflowTestInput: [...input, of("source_id", sampled)],
    WorkflowTest: [of("warnings", warned), of("steps[].warnings[].line_item_index steps[].warnings[].message", alone)],
    "WorkflowTemplate WorkflowTemplateDetail": [],
    WorkflowTemplateList: [],
    InstantiatedWorkflow: [of("steps edges", draft)],
    WorkflowTemplateUse: [of("name source_id", own), of("bindings", missing)],
    WorkflowAggregateInput: [
      of("workflow_id version source_id source source.* workflow workflow.*", saved),
      of("actions actions[].*", acting)
    ],
    WorkflowAggregate: [
      of("warnings", aggregated("what it leaves open is told, of a source that it makes and of the workflow"))
    ]
  },
  states: [
    row("a test is in no list and in no metric", sampled),
    row("an aggregate is written as a whole, or not at all", nothing),
    row("of two that write the same aggregate one does", race),
    row(
      "from a template to a retried step by the documentation alone",
      tutorial("The tutorial leads from a template to a run that failed and was retried")
    )
  ],
  limits: [row("a test: 60 seconds, 2,000 transitions, 10 MiB of outputs", bounded)]
}
