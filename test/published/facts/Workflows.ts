import { of, row, type Section, tests } from "./Facts.ts"

const api = tests("packages/api/test/Workflows.test.ts")
const stored = tests("packages/storage/test/Workflows.test.ts")
const input = stored("Spaces around a name are removed, and the source may be written as an object")

const graph = stored("A stored workflow is returned with all default values of its graph")
const kinds = tests("packages/workflows/test/Workflow.test.ts")("A valid graph is returned with its defaults")
const issue = stored("A workflow is not activated with a disabled resource, and reports a later disabling")
const warned = api("Unknown output names in a workflow get warnings at every write and every test")
const inFile = api("JSON Schema of a workflow describes every kind of step, and a file that names it is accepted")
const triggers = tests("packages/api/test/WorkflowTriggers.test.ts")(
  "Triggers are stored with their defaults, belong to the version, and are validated"
)
const written = [
  of(
    "run_label",
    tests("packages/api/test/WorkflowRuns.test.ts")(
      "A run is labelled when it begins, by the template of its version, and found by its label"
    )
  ),
  of("name source_id description", input),
  of("steps edges", graph),
  of("status", issue),
  of("triggers", triggers)
]

const tellsOfIt = tests("packages/api/test/OnFailureWorkflow.test.ts")(
  "A failed run and its on-failure run name each other"
)
const reading = tests("packages/api/test/WorkflowRuns.test.ts")
const lists = tests("packages/api/test/EveryList.test.ts")
const kept = tests("packages/storage/test/RetentionRuns.test.ts")
const ofTeam = tests("packages/api/test/TeamLimits.test.ts")(
  "Limit on ${plural} holds for every way to create them, also when the last ones are created at the same time"
)
const reports = tests("packages/workflows/test/RunReport.test.ts")

const listed = reading("Workflow runs are listed with the newest first, in pages and by status")
const shown = reading("Workflow run shows its version, its trigger and its steps in order")
const found = reading("Workflow run is found by its id alone, in its own team, while its workflow exists")
const tried = reading("Workflow run shows each attempt of a step and the time of the next retry")
const retried = reading("Workflow run continues from a failed step that is retried")
const cancelled = reading("Workflow run is cancelled by a call, and an ended run is not")
const begunAgain = reading("Workflow run is begun again with a changed request, once for each idempotency key")
const steered = tests("packages/entities/test/RunSteering.test.ts")
const decisions = tests("packages/api/test/WorkflowDecisions.test.ts")
const decided = decisions("Workflow step that waits for an approval continues by the decision, which the run shows")
const undecided = decisions("Decision is refused when the step does not wait, and when its body is wrong")
const keptValues = decisions("Values of a workflow are listed, read, stored and deleted by calls")
const cleared = reading("Workflow runs can be cleared after they have ended")
const active = reading("Workflow runs of the whole team are listed and searched, with their steps")
const previewed = reading("Workflow run shows previews on request and without secrets")
const answered = reading("The answer of a refused call is shown with each attempt and read by the error branch")

const labelled = reading("A run is labelled when it begins, by the template of its version, and found by its label")

const bulkRetried = reading("A bulk retry of runs is a plan first, and then retries the failed step of each")
const bulkCancelled = reading("A bulk cancellation of runs ends each that has not ended")
const runFiltered = tests("packages/storage/test/reads/Narrowings.test.ts")(
  "A filter of runs selects the same rows in the list and the plan of a bulk operation"
)

export const workflows: Section = {
  title: "Workflows",
  endpoints: [
    row("GET /workflows", api("Workflows are listed by their latest change and can be filtered by status")),
    row("GET /workflows/{id}/runs", listed),
    row("GET /workflows/{id}/runs/{runId}", shown),
    row("GET /workflow_runs/{id}", found),
    row("POST /workflows/{id}/runs/{runId}/retry", retried),
    row("POST /workflows/{id}/runs/{runId}/cancel", cancelled),
    row("POST /workflows/{id}/runs/{runId}/rerun", begunAgain),
    row(
      "GET,POST /workflow_runs/bulk_operations; GET /workflow_runs/bulk_operations/{id}; POST /workflow_runs/bulk_operations/{id}/run",
      bulkRetried
    ),
    row(
      "POST /workflow_runs/bulk_operations/{id}/cancel",
      steered("A bulk cancellation counts runs that have ended meanwhile as failed, and ends with its operation")
    ),
    row("POST /workflows/{id}/runs/{runId}/steps/{stepId}/decision", decided),
    row("GET /workflows/{id}/values; GET,PUT,DELETE /workflows/{id}/values/{key}", keptValues),
    row("DELETE /workflows/{id}/runs", cleared),
    row("GET /workflow-activity", active),
    row(
      "POST,PUT /workflows; GET,PUT,PATCH,DELETE /workflows/{id}",
      api("Workflow can be created, read, changed and deleted under ${prefix}/workflows")
    )
  ],
  fields: {
    Workflow: [of("steps edges", graph), of("run_label", labelled), of("triggers", triggers)],
    WorkflowRunBulkOperation: [
      of("confirm workflow_id error_code error_step_id", bulkRetried),
      of("action status", bulkCancelled),
      of(
        "from to start end",
        tests("test/contract/Records.test.ts")(
          "A bulk operation's filter is shown with the names that lists use, whatever names were sent"
        )
      ),
      of(
        "all rate",
        tests("test/contract/BulkOperations.test.ts")("A bulk operation on all records must be requested explicitly")
      ),
      of("*", runFiltered)
    ],
    WrittenWorkflow: [
      of("steps edges", graph),
      of("run_label", labelled),
      of("triggers", triggers),
      of("warnings", warned)
    ],
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
      of("version", api("Upsert of a workflow by name is refused when it was made from an older version")),
      of("$schema", inFile)
    ],
    WorkflowPatch: [
      ...written,
      of("version", stored("A change of an outdated version is rejected and writes nothing")),
      of("$schema", inFile)
    ],
    WorkflowRun: [
      of("label", labelled),
      of("hold_reason outcome error_code error_message error_step_id", listed),
      of("on_failure", tellsOfIt)
    ],
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
      of("error error.*", answered),
      of("iterations", reports("A run report shows the progress of a list")),
      of("warnings warnings[].*", reports("A run report contains warnings without secrets"))
    ],
    StepAttempt: [of("*", tried), of("error_message response", answered)],
    StepAnswer: [of("*", answered)],
    ElementExecution: [
      of(
        "*",
        reports("A run report tells each element of a list while it runs, after it failed, and while it is retried")
      )
    ],
    PayloadPreview: [of("*", previewed)],
    WorkflowActivity: [of("*", active)],
    WorkflowActivityList: [of("total_exact applied_range", active)],
    StepRetryInput: [
      of("step_id", retried),
      of(
        "step_id",
        reading("Workflow run tells the elements of a list, and a retry of its step calls only those that failed")
      )
    ],
    RetriedStep: [of("*", retried)],
    CancelledRun: [of("*", cancelled)],
    WorkflowRerunInput: [
      of("version", steered("A rerun is a new run of the pinned, the current or a given version, once for each id")),
      of("trigger", begunAgain)
    ],
    StartedRerun: [of("*", begunAgain)],
    StepDecisionInput: [of("decision", decided), of("comment", undecided)],
    StepDecision: [of("*", decided)],
    WorkflowValueInput: [of("*", keptValues)],
    WorkflowValue: [of("*", keptValues)],
    WorkflowValueKeys: [of("*", keptValues)],
    DeletedWorkflowValue: [of("*", keptValues)],
    ClearedRuns: [of("*", cleared)]
  },
  states: [
    row("a run that has ended is taken up again by a step retry", retried),
    row("a paused workflow's runs are held", listed),
    row(
      "a run that calls, waits or is queued is cancelled",
      steered("A cancel aborts the call of a run and ends it, and a repeated cancel changes nothing")
    ),
    row(
      "runs are kept as records, what steps gave as payloads",
      kept("Workflow runs are kept as long as records, and their outputs and previews as long as payloads")
    )
  ],
  limits: [
    row(
      "a label of a run: 200 characters",
      tests("packages/workflows/test/RunLabel.test.ts")("A label is one line of at most 200 characters")
    ),
    row(
      "search in previews: 50 runs at once, 4 MiB of each, 2 seconds for a page",
      reading("Workflow runs are narrowed by what failed, when they started, and what their previews show")
    ),
    row(
      "the body of an answer in an error: 64 KiB",
      tests("packages/workflows/test/StepAnswer.test.ts")("No body makes an answer larger than its limit")
    ),
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
