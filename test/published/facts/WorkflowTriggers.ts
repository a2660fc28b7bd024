import { of, row, type Section, tests } from "./Facts.ts"

const triggers = tests("packages/api/test/WorkflowTriggers.test.ts")
const schedules = tests("packages/workflows/test/triggers/Schedule.test.ts")

const begun = triggers("A call begins a run with its own input, which the run's detail shows")
const written = triggers("Triggers are stored with their defaults, belong to the version, and are validated")
const answered = triggers("A sender is answered by the output of a step, whether it asks before the run or after it")
const repeated = triggers("A redelivery within the window repeats the first run and carries nothing out")
const made = triggers("A paused workflow makes up for missed times when it goes on, and a disabled one has missed none")

const limited = triggers("Limits on runs are stored with their defaults, belong to the version, and are validated")
const turns = tests("packages/entities/test/RunTurns.test.ts")
const debounced = tests("packages/entities/test/DebouncedRuns.test.ts")
const failures = tests("packages/entities/test/FailureRuns.test.ts")
const onFailure = tests("packages/api/test/OnFailureWorkflow.test.ts")

const named = onFailure(
  "A workflow that could not begin is refused when it is named, and one that was named before stays"
)
const tellsOfIt = onFailure("A failed run and its on-failure run name each other")
const batched = tests("packages/entities/test/BatchedRuns.test.ts")

export const workflowTriggers: Section = {
  title: "Triggers of workflows",
  endpoints: [row("POST /workflows/{id}/runs", begun)],
  fields: {
    WorkflowRunInput: [of("trigger", begun)],
    "WorkflowTriggers WorkflowTriggersWrite": [
      of("schedule schedule[].* answer", written),
      of("deduplicate", repeated),
      of("concurrency rate_limit priority debounce batch", limited),
      of("on_failure", named)
    ],
    WorkflowSchedule: [of("cron timezone missed", written)],
    "WorkflowDeduplicate WorkflowDeduplicateWrite": [of("key window_ms", repeated)],
    "WorkflowConcurrency WorkflowConcurrencyWrite": [of("limit key", limited)],
    "WorkflowRateLimit WorkflowRateLimitWrite": [of("count period", limited)],
    "WorkflowPriority WorkflowPriorityWrite": [of("key default", limited)],
    "WorkflowDebounce WorkflowDebounceWrite": [of("key wait_ms max_wait_ms", limited)],
    "WorkflowBatch WorkflowBatchWrite": [of("key max_count window_ms", limited)],
    "WorkflowOnFailure WorkflowOnFailureWrite": [of("workflow_id", named)],
    FailureRun: [of("*", tellsOfIt)],
    "WorkflowAnswer WorkflowAnswerWrite": [of("step_id timeout_ms", answered)]
  },
  states: [
    row(
      "each occurrence of a schedule begins one run",
      triggers("Each occurrence begins one run, though several processes look and their clocks jump")
    ),
    row(
      "runs beyond a limit wait, and begin in order",
      turns("Runs beyond the limit wait as rows, and begin in the order of arrival as others end")
    ),
    row(
      "runs of one key begin one after the other",
      turns("Runs of one key begin one after the other in the order of arrival, and those of other keys beside them")
    ),
    row(
      "of the runs that wait, those of the highest priority begin first",
      turns("Of the runs that wait, those of the highest priority begin first, and of these the first that came")
    ),
    row(
      "a workflow has no on-failure workflow although its team has one",
      onFailure("A team names a workflow of its own for runs whose workflow has no setting, or does not refuse it")
    ),
    row(
      "a death of the process loses no run that waits",
      turns("Deaths at random operations lose no run, begin none twice, and never exceed the limit")
    ),
    row(
      "of runs that come soon after each other the last one is carried out",
      debounced("The last of the runs that come soon after each other is carried out when its window is over")
    ),
    row(
      "a death of the process supersedes no run twice",
      debounced("A death after a run was superseded ends it later, and one before a run begins lets it begin")
    ),
    row(
      "runs of one key are carried out together",
      batched("The first run of a key carries out what came within the window, in the order of arrival")
    ),
    row(
      "a death of the process loses no request of a batch",
      batched("Random deaths of the process lose no request, and carry none out twice")
    ),
    row(
      "a failed run begins one run of the on-failure workflow",
      failures("A failed run begins one run of the named workflow, and tells it what failed")
    ),
    row(
      "a death of the process loses no on-failure run, and begins none twice",
      failures(
        "A failure whose process died before or after it was told begins one run, and a retry that fails another one"
      )
    ),
    row(
      "an on-failure run causes no other one",
      failures("A run that follows from a failed run begins none when it fails itself, however deep it is called")
    ),
    row("what is missed follows a stated rule", made),
    row(
      "a repeated call with an idempotency key begins one run",
      triggers("A repeated call with the same idempotency key begins no second run")
    ),
    row("a workflow with triggers needs no source", triggers("A workflow with triggers needs no source"))
  ],
  limits: [
    row("10 schedules of a workflow; an answer waits 30 seconds at most", written),
    row(
      "10,000 runs of a workflow wait to begin",
      turns("A run that finds too many waiting ends with a reason, and one that needs not wait begins")
    ),
    row(
      "10,000 keys of a workflow wait for later runs",
      debounced("Waiting runs begin when the setting is removed, and a run of one key too many ends with a reason")
    ),
    row(
      "500 requests of a batch; a full one begins at once",
      batched("A full batch begins at once, and the next run opens another one")
    ),
    row("1,000 runs at once; 100 starts a second", limited),
    row(
      "all missed times: the latest 100",
      schedules("At most the latest hundred missed occurrences begin runs, however long nobody looked")
    )
  ]
}
