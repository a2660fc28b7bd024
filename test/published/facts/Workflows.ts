import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Workflows.test.ts")
const stored = tests("packages/storage/test/Workflows.test.ts")
const input = stored("Spaces around a name are removed, and the source may be written as an object")

const graph = stored("A stored workflow is returned with all default values of its graph")
const kinds = tests("packages/workflows/test/Workflow.test.ts")("A valid graph is returned with its defaults")
const issue = stored("A workflow is not activated with a disabled resource, and reports a later disabling")
const warned = api("Unknown output names in a workflow get warnings at every write and every test")
const written = [of("name source_id description", input), of("steps edges", graph), of("status", issue)]

const reading = tests("packages/api/test/WorkflowRuns.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")
const kept = tests("packages/storage/test/RetentionRuns.test.ts")
const ofTeam = tests("packages/api/test/TeamLimits.test.ts")(
  "Limit on ${plural} holds for every way to create them, also when the last ones are created at the same time"
)
const reports = tests("packages/workflows/test/RunReport.test.ts")

const listed = reading("Workflow runs are listed with the newest first, in pages and by status")
const shown = reading("Workflow run shows its version, its trigger and its steps in order")
const tried = reading("Workflow run shows each attempt of a step and the time of the next retry")
const retried = reading("Workflow run continues from a failed step that is retried")
const decisions = tests("packages/api/test/WorkflowDecisions.test.ts")
const decided = decisions("Workflow step that waits for an approval continues by the decision, which the run shows")
const undecided = decisions("Decision is refused when the step does not wait, and when its body is wrong")
const cleared = reading("Workflow runs can be cleared after they have ended")
const active = reading("Workflow runs of the whole team are listed and searched, with their steps")
const previewed = reading("Workflow run shows previews on request and without secrets")

export const workflows: Section = {
  title: "Workflows",
  endpoints: [
    row("GET /workflows", api("Workflows are listed by their latest change and can be filtered by status")),
    row("GET /workflows/{id}/runs", listed),
    row("GET /workflows/{id}/runs/{runId}", shown),
    row("POST /workflows/{id}/runs/{runId}/retry", retried),
    row("POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision", decided),
    row("DELETE /workflows/{id}/runs", cleared),
    row("GET /workflow-activity", active),
    row(
      "POST,PUT /workflows; GET,PUT,PATCH,DELETE /workflows/{id}",
      api("Workflow can be created, read, changed and deleted under ${prefix}/workflows")
    )
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
    WorkflowDeleted: [
      of(
        "source_id source_deleted",
        api("Workflow can be created, read, changed and deleted under ${prefix}/workflows")
      )
    ],
    WorkflowWrite: [
      ...written,
      of("version", api("Upsert of a workflow by name is refused when it was made from an older version"))
    ],
    WorkflowPatch: [
      ...written,
      of("version", stored("A change of an outdated version is rejected and writes nothing"))
    ],
    WorkflowRun: [of("hold_reason outcome error_code error_message error_step_id", listed)],
    WorkflowRunList: [of("next_cursor", listed)],
    WorkflowRunDetail: [of("version trigger steps", shown), of("retry", retried)],
    VersionEvidence: [of("*", shown)],
    ResourceEvidence: [of("*", reading("Workflow run shows the resources that its steps named at the start"))],
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
    StepDecisionInput: [of("decision", decided), of("comment", undecided)],
    StepDecision: [of("*", decided)],
    ClearedRuns: [of("*", cleared)]
  },
  states: [
    row("a run that has ended is taken up again by a step retry", retried),
    row("a paused workflow's runs are held", listed),
    row(
      "runs are kept as records, what steps gave as payloads",
      kept("Workflow runs are kept as long as records, and their outputs and previews as long as payloads")
    )
  ],
  limits: [
    row(
      "run list limit: 255 at most; activity limit: 100 at most",
      lists("List ${path} has the documented envelope, order and limits")
    ),
    row("search: 200 characters at most", active),
    row("1,000 workflows of a team", ofTeam),
    row("a run is begun at most 100 times: 409 STEP_NOT_RETRYABLE", retried),
    row(
      "versions that no run goes by are kept for an hour",
      kept("Versions without runs are removed after an hour, unless others are based on them")
    ),
    row("deleted rows go", kept("Deleted workflows, actions and filters are removed once nothing refers to them"))
  ]
}
