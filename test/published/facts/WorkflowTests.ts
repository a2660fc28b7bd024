import { of, row, type Section, tests } from "./Facts.ts"

const trials = tests("packages/api/test/WorkflowTests.test.ts")
const real = tests("test/contract/WorkflowTests.test.ts")
const templated = tests("packages/api/test/WorkflowTemplates.test.ts")
const aggregated = tests("packages/api/test/WorkflowAggregates.test.ts")
const tutorial = tests("test/contract/WorkflowTutorial.test.ts")

const dry = trials(
  "Dry run of a stored workflow executes steps of the process, mocks its destination and takes no time for delays"
)
const mocked = trials("Mock of a dry run gives its step an output, or an error that follows the error path")
const alone = trials("Single step of a dry run uses mocks of other steps and runs for each item of a list")
const warned = tests("packages/api/test/Workflows.test.ts")(
  "Unknown output names in a workflow get warnings at every write and every test"
)
const bounded = trials(
  "Workflow test without previews returns none, and a test that grows too large ends with an error"
)
const sampled = real("A workflow is tested with the last or a given request, and people see it without secrets")
const live = real("A live test sends once with the headers of a run and stores nothing")

const checked = trials(
  "A definition is checked without being stored: all issues at their steps, or its warnings, as a save has them"
)

const list = templated("List of workflow templates has all of them and what each requires")
const draft = templated("Workflow template ${template.key} becomes a draft that its sample passes through")
const own = templated("Workflow template without a given source and name makes a draft with the template's name")
const missing = templated("Workflow template with wrong bindings is refused with each fault and creates nothing")

const kept = tests("packages/api/test/TeamTemplates.test.ts")
const keptOwn = kept("A team saves a workflow as a template, begins others from it and deletes it")
const keptDraft = kept("A template is made of the draft of a workflow when that is asked for")
const keptApart = kept("A team neither sees nor uses nor deletes templates and workflows of another team")
const keptFew = kept(
  "The number and the bytes of a team's templates are limited, also when the last ones are saved at the same time"
)

const saved = aggregated("Workflow and its source are created in one call, and the workflow is changed by its id")
const acting = aggregated("Actions are saved with a workflow, and its steps name them by reference")
const nothing = aggregated("Combined call writes nothing when one part is refused")
const race = aggregated("One of many concurrent combined calls with one name succeeds, with all of its parts")

const drafted = tests("packages/api/test/WorkflowVersions.test.ts")(
  "A draft is written, tested, tried with stored requests and published beside the live version"
)

const input = [
  of("mode", live),
  of("trigger include_previews", bounded),
  of("request_id", sampled),
  of("step_id context context.*", alone),
  of("mocks mocks.*", mocked),
  of("steps edges", mocked)
]

export const workflowTests: Section = {
  title: "Workflow tests, templates and aggregates",
  endpoints: [
    row("POST /workflows/{id}/test", dry),
    row("POST /workflows/test", mocked),
    row("POST /workflows/validate", checked),
    row("GET /workflow-templates; GET /workflow-templates/{key}", list),
    row("POST /workflow-templates/{key}/instantiate", draft),
    row("POST /workflow-templates; DELETE /workflow-templates/{key}", keptOwn),
    row("PUT /workflows/aggregate", saved)
  ],
  fields: {
    WorkflowTestInput: [...input, of("draft", drafted)],
    UnsavedWorkflowTestInput: [...input, of("source_id", sampled)],
    WorkflowTest: [of("warnings", warned), of("steps[].warnings[].line_item_index steps[].warnings[].message", alone)],
    WorkflowValidationInput: [of("workflow_id steps edges", checked)],
    WorkflowValidation: [],
    WorkflowIssue: [of("data", checked)],
    "WorkflowTemplate WorkflowTemplateDetail": [],
    WorkflowTemplateList: [],
    WorkflowTemplateSave: [of("name description workflow_id", keptOwn), of("draft", keptDraft)],
    InstantiatedWorkflow: [of("steps edges triggers", draft)],
    WorkflowTemplateUse: [of("name source_id", own), of("bindings", missing)],
    WorkflowAggregateInput: [
      of("workflow_id version source_id source source.* workflow workflow.*", saved),
      of("actions actions[].*", acting)
    ],
    WorkflowAggregate: [
      of("warnings", aggregated("Combined call returns the warnings of the source that it creates and of the workflow"))
    ]
  },
  states: [
    row("a template of a team is seen, used and deleted by this team alone", keptApart),
    row("a test is in no list and in no metric", sampled),
    row("an aggregate is written as a whole, or not at all", nothing),
    row("of two that write the same aggregate one does", race),
    row(
      "from a template to a retried step by the documentation alone",
      tutorial("The tutorial leads from a template to a run that failed and was retried")
    )
  ],
  limits: [
    row("templates of a team: 100, with 16 MiB together", keptFew),
    row("a test: 60 seconds, 2,000 transitions, 10 MiB of outputs", bounded)
  ]
}
