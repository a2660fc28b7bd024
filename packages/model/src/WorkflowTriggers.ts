import { Schema } from "effect"
import { RatePeriod } from "./Destination.ts"

/** What begins a workflow's runs beside the requests of its source. */

/**
 * What becomes of occurrences that nobody carried out in time. `skip`: they begin no run. `once`: the latest begins one. `all`:
 * each begins one, of the latest 100.
 */
export const MissedRule = Schema.Literals(["skip", "once", "all"])
export type MissedRule = typeof MissedRule.Type

export const WorkflowSchedule = Schema.Struct({
  cron: Schema.String,
  timezone: Schema.String,
  missed: MissedRule
}).annotate({ identifier: "WorkflowSchedule" })
export type WorkflowSchedule = typeof WorkflowSchedule.Type

/** The step whose output answers the sender of the request, and how long the sender waits for it (ms). */
export const WorkflowAnswer = Schema.Struct({
  step_id: Schema.String,
  timeout_ms: Schema.Int.annotate({ description: "How long the sender waits, in milliseconds" })
}).annotate({ identifier: "WorkflowAnswer" })
export type WorkflowAnswer = typeof WorkflowAnswer.Type

/** Of runs with the same value at `key`, those within `window_ms` of the first one repeat it, and carry nothing out. */
export const WorkflowDeduplicate = Schema.Struct({
  key: Schema.String,
  window_ms: Schema.Int.annotate({ description: "Milliseconds" })
}).annotate({ identifier: "WorkflowDeduplicate" })
export type WorkflowDeduplicate = typeof WorkflowDeduplicate.Type

/** How many runs have begun and not ended at most; with a `key`, of those with the same value. The others wait in order. */
export const WorkflowConcurrency = Schema.Struct({
  limit: Schema.Int,
  key: Schema.NullOr(Schema.String)
}).annotate({ identifier: "WorkflowConcurrency" })
export type WorkflowConcurrency = typeof WorkflowConcurrency.Type

/** How many runs begin in a period at most. The others wait in order. */
export const WorkflowRateLimit = Schema.Struct({
  count: Schema.Int,
  period: RatePeriod
}).annotate({ identifier: "WorkflowRateLimit" })
export type WorkflowRateLimit = typeof WorkflowRateLimit.Type

/** A priority is from `-mostPriority` to `mostPriority`. */
export const mostPriority = 100

/**
 * Of the runs that wait, those with the highest number at `key` begin first. `default`: the priority of a run whose value there is not a whole
 * number.
 */
export const WorkflowPriority = Schema.Struct({
  key: Schema.String,
  default: Schema.Int.check(Schema.isBetween({ minimum: -mostPriority, maximum: mostPriority }))
}).annotate({ identifier: "WorkflowPriority" })
export type WorkflowPriority = typeof WorkflowPriority.Type

/** Of runs with the same value at `key` that come soon after each other, the last one is carried out. */
export const WorkflowDebounce = Schema.Struct({
  key: Schema.NullOr(Schema.String),
  wait_ms: Schema.Int.annotate({ description: "Milliseconds" }),
  max_wait_ms: Schema.Int.annotate({ description: "Milliseconds" })
}).annotate({ identifier: "WorkflowDebounce" })
export type WorkflowDebounce = typeof WorkflowDebounce.Type

/** Runs with the same value at `key` that are made within `window_ms` of the first one are carried out together, by that one. */
export const WorkflowBatch = Schema.Struct({
  key: Schema.NullOr(Schema.String),
  max_count: Schema.Int,
  window_ms: Schema.Int.annotate({ description: "Milliseconds" })
}).annotate({ identifier: "WorkflowBatch" })
export type WorkflowBatch = typeof WorkflowBatch.Type

/** The workflow of the team of which a run begins when a run fails. Null: none, whatever the team says. */
export const WorkflowOnFailure = Schema.Struct({
  workflow_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "WorkflowOnFailure" })
export type WorkflowOnFailure = typeof WorkflowOnFailure.Type

export const WorkflowTriggers = Schema.Struct({
  schedule: Schema.Array(WorkflowSchedule),
  answer: Schema.NullOr(WorkflowAnswer),
  deduplicate: Schema.NullOr(WorkflowDeduplicate),
  concurrency: Schema.NullOr(WorkflowConcurrency),
  rate_limit: Schema.NullOr(WorkflowRateLimit),
  priority: Schema.NullOr(WorkflowPriority),
  debounce: Schema.NullOr(WorkflowDebounce),
  batch: Schema.NullOr(WorkflowBatch),
  on_failure: Schema.NullOr(WorkflowOnFailure)
}).annotate({ identifier: "WorkflowTriggers" })
export type WorkflowTriggers = typeof WorkflowTriggers.Type

/** Settings that came after others: a row that was stored before them has none. */
const later: Partial<WorkflowTriggers> = {
  concurrency: null,
  rate_limit: null,
  priority: null,
  debounce: null,
  batch: null,
  on_failure: null
}

/** Stored triggers, complete. */
export const completeTriggers = <Stored extends WorkflowTriggers | null>(stored: Stored): Stored =>
  stored === null ? stored : { ...later, ...stored }

/** What began a run. `manual`: a person by the API; `api`: a key. `workflow`: another workflow. `failure`: a run that has failed. */
export const RunTriggerType = Schema.Literals(["request", "api", "manual", "schedule", "workflow", "failure"])
export type RunTriggerType = typeof RunTriggerType.Type

/** The names of what began a run that no request began. */
export const triggerNames: Readonly<Record<Exclude<RunTriggerType, "request">, string>> = {
  api: "API call",
  manual: "Manual run",
  schedule: "Schedule",
  workflow: "Workflow",
  failure: "Failed run"
}
