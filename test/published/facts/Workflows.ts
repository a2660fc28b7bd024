import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Workflows.test.ts")
const stored = tests("packages/storage/test/Workflows.test.ts")
const input = stored("a name is judged without the space around it, and a source may be written as an object")

const graph = stored("stores a workflow and shows it, its graph with all defaults")
const kinds = tests("packages/workflows/test/Workflow.test.ts")("A valid graph is returned with its defaults")
const issue = stored("is not activated while it names what is disabled; it tells so when that comes later")
const warned = api("names that a step's output does not have are taken with warnings, by every write and by a test")
const written = [of("name source_id description", input), of("steps edges", graph), of("status", issue)]

const reading = tests("packages/api/test/WorkflowRuns.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")
const kept = tests("packages/storage/test/RetentionRuns.test.ts")
const ofTeam = tests("packages/api/test/TeamLimits.test.ts")(
  "${plural}: as many as they may be, however they are made, and also when the last ones are made at once"
)
const reports = tests("packages/workflows/test/RunReport.test.ts")

const listed = reading("are listed, newest first, page by page and by their state")
const shown = reading("are shown with the version that ran, what began them, and their steps in order")
const tried = reading("tell each attempt of a step, and what it waits for")
const retried = reading("go on from a failed step that is retried, once it may be")
const cleared = reading("are cleared when they are at their end")
const active = reading("of the whole team are listed and searched for, with their steps")
const previewed = reading("show previews when they are asked for, without what is secret")

export const workflows: Section = {
  title: "Workflows",
  endpoints: [
    row("GET /workflows", api("a list is of the latest change first, and knows the states")),
    row("GET /workflows/{id}/runs", listed),
    row("GET /workflows/{id}/runs/{runId}", shown),
    row("POST /workflows/{id}/runs/{runId}/retry", retried),
    row("DELETE /workflows/{id}/runs", cleared),
    row("GET /workflow-activity", active),
    row("POST,PUT /workflows; GET,PUT,PATCH,DELETE /workflows/{id}", api("the life of one of ${prefix}/workflows"))
  ],
  fields: {
    Workflow: [of("steps edges", graph)],
    WrittenWorkflow: [of("steps edges", graph), of("warnings", warned)],
    WorkflowStep: [of("*", kinds)],
    InlineAction: [of("*", graph)],
    "TriggerEdge StepEdge": [of("*", graph)],
    WorkflowTrigger: [],
    WorkflowCapabilities: [],
    WorkflowRuntimeIssue: [of("code step_id step_number field", issue)],
    WorkflowDeleted: [of("source_id source_deleted", api("the life of one of ${prefix}/workflows"))],
    WorkflowWrite: [
      ...written,
      of("version", api("an upsert by name is refused when it was made from an earlier version, as a change by id is"))
    ],
    WorkflowPatch: [...written, of("version", stored("a change of an old version is refused, and nothing is written"))],
    WorkflowRun: [of("hold_reason outcome error_code error_message error_step_id", listed)],
    WorkflowRunList: [of("next_cursor", listed)],
    WorkflowRunDetail: [of("version trigger steps", shown), of("retry", retried)],
    VersionEvidence: [of("*", shown)],
    ResourceEvidence: [of("*", reading("tell what their steps named when they began"))],
    RunTrigger: [of("*", shown)],
    StepRetries: [of("*", retried)],
    StepSummary: [of("*", active)],
    StepExecution: [
      of("attempts wait attempt_count max_attempts", tried),
      of("input_preview output_preview", previewed),
      of("iterations", reports("A run report shows the progress of a list")),
      of("warnings warnings[].*", reports("A run report contains warnings without secrets"))
    ],
    StepAttempt: [of("*", tried)],
    PayloadPreview: [of("*", previewed)],
    WorkflowActivity: [of("*", active)],
    WorkflowActivityList: [of("total_exact applied_range", active)],
    StepRetryInput: [of("step_id", retried)],
    RetriedStep: [of("*", retried)],
    ClearedRuns: [of("*", cleared)]
  },
  states: [
    row("a run that has ended is taken up again by a step retry", retried),
    row("a paused workflow's runs are held", listed),
    row(
      "runs are kept as records, what steps gave as payloads",
      kept("runs with their steps as long as records, what steps gave and its previews as long as payloads")
    )
  ],
  limits: [
    row(
      "run list limit: 255 at most; activity limit: 100 at most",
      lists("${path} has its envelope, its order and its limits")
    ),
    row("search: 200 characters at most", active),
    row("1,000 workflows of a team", ofTeam),
    row("a run is begun at most 100 times: 409 STEP_NOT_RETRYABLE", retried),
    row(
      "versions that no run goes by are kept for an hour",
      kept("versions that no run goes by go an hour after the next was made, but for what others are defined in")
    ),
    row("deleted rows go", kept("deleted workflows, actions and filters, once nothing can ask for them"))
  ]
}
