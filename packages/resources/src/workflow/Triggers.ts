import { Schema } from "effect"
import type { WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import { usualPriority } from "@tidegate/workflows/triggers/Priority"
import { didYouMean } from "@tidegate/model/NearestName"
import type { FieldErrors } from "../Input.ts"
import { optional, text } from "../Members.ts"
import { Cron, faultOf, missedOf, normalCron, Timezone } from "../ScheduleTimes.ts"
import { OnFailureWrite } from "./OnFailure.ts"
import {
  BatchWrite,
  ConcurrencyWrite,
  DebounceWrite,
  KeyPath,
  maxWaitOf,
  PriorityWrite,
  RateLimitWrite,
  usualBatch
} from "./TurnSettings.ts"

/** What begins a workflow's runs beside its source's requests, as it is written. */

/** The schedules of one workflow. */
export const maxSchedules = 10

const Schedule = Schema.Struct({
  cron: Cron,
  timezone: optional(Timezone),
  missed: optional(missedOf("begin no run"))
})
  .annotate({ message: "must be an object with a cron" })
  .check(Schema.makeFilter(faultOf, { toJsonSchema: () => ({}) }))

/** A schedule that is there twice would have no effect the second time. */
const areDifferent = (schedules: ReadonlyArray<{ readonly cron: string; readonly timezone?: string }>): boolean =>
  new Set(schedules.map(({ cron, timezone = "UTC" }) => `${normalCron(cron)} ${timezone}`)).size === schedules.length

const longestAnswer = 30_000
const timeoutMessage = `must be a whole number from 100 to ${longestAnswer}`

const Answer = Schema.NullOr(
  Schema.Struct({
    step_id: text.annotate({ message: "must be a string", description: "The step whose output is the answer" }),
    timeout_ms: optional(
      Schema.Number.annotate({ description: "How long the sender waits, in milliseconds. Default: 10,000" }).check(
        Schema.isInt({ message: timeoutMessage }).abort(),
        Schema.isBetween({ minimum: 100, maximum: longestAnswer }, { message: timeoutMessage })
      )
    )
  }).annotate({ identifier: "WorkflowAnswerWrite" })
).annotate({
  message: "must be an object with a step_id, or null",
  description: "The sender of a request waits for the output of a step as its answer. Null: it is answered at once"
})

const longestWindow = 7 * 86_400_000
const windowMessage = `must be a whole number from 1000 to ${longestWindow}`

const Deduplicate = Schema.NullOr(
  Schema.Struct({
    key: KeyPath,
    window_ms: Schema.Number.annotate({ description: "Milliseconds, up to 7 days" }).check(
      Schema.isInt({ message: windowMessage }).abort(),
      Schema.isBetween({ minimum: 1_000, maximum: longestWindow }, { message: windowMessage })
    )
  }).annotate({ identifier: "WorkflowDeduplicateWrite" })
).annotate({
  message: "must be an object with a key and window_ms, or null",
  description:
    "A run with the same value at `key` as one within `window_ms` before it carries nothing out: its outcome is `duplicate`. Null: every run is carried out"
})

export const TriggersWrite = Schema.NullOr(
  Schema.Struct({
    schedule: optional(
      Schema.Array(Schedule)
        .annotate({ message: "must be a list" })
        .check(
          Schema.isMaxLength(maxSchedules, { message: `must be at most ${maxSchedules}` }),
          Schema.makeFilter((schedules) => areDifferent(schedules) || "must have different times", {
            toJsonSchema: () => ({})
          })
        )
        .annotate({ description: "Times at which runs begin" })
    ),
    answer: optional(Answer),
    deduplicate: optional(Deduplicate),
    concurrency: optional(ConcurrencyWrite),
    rate_limit: optional(RateLimitWrite),
    priority: optional(PriorityWrite),
    debounce: optional(DebounceWrite),
    batch: optional(BatchWrite),
    on_failure: optional(OnFailureWrite)
  }).annotate({ identifier: "WorkflowTriggersWrite" })
).annotate({
  message: "must be an object or null",
  description: "What begins runs beside the requests of the source; replaced as a whole. Null: nothing"
})

/** The triggers that are stored. */
export const triggersOf = (written: typeof TriggersWrite.Type): WorkflowTriggers | null =>
  written === null
    ? null
    : {
        schedule: (written.schedule ?? []).map(({ cron, missed = "once", timezone = "UTC" }) => ({
          cron: normalCron(cron),
          timezone,
          missed
        })),
        answer:
          written.answer == null
            ? null
            : { step_id: written.answer.step_id, timeout_ms: written.answer.timeout_ms ?? 10_000 },
        deduplicate: written.deduplicate ?? null,
        concurrency:
          written.concurrency == null
            ? null
            : { limit: written.concurrency.limit, key: written.concurrency.key ?? null },
        rate_limit: written.rate_limit ?? null,
        priority:
          written.priority == null
            ? null
            : { key: written.priority.key, default: written.priority.default ?? usualPriority },
        debounce:
          written.debounce == null
            ? null
            : {
                key: written.debounce.key ?? null,
                wait_ms: written.debounce.wait_ms,
                max_wait_ms: maxWaitOf(written.debounce)
              },
        on_failure: written.on_failure ?? null,
        batch:
          written.batch == null
            ? null
            : {
                key: written.batch.key ?? null,
                max_count: written.batch.max_count ?? usualBatch,
                window_ms: written.batch.window_ms
              }
      }

/** Faults of triggers that depend on the rest of the workflow: settings that would have no effect. */
export const triggerFaults = ({
  source_id,
  steps,
  triggers
}: {
  readonly source_id: string | null
  readonly steps: ReadonlyArray<{ readonly id: string }>
  readonly triggers: WorkflowTriggers | null
}): FieldErrors => {
  if (triggers?.debounce != null && triggers.batch != null) {
    return [
      {
        path: "triggers.batch",
        message: "cannot be used with debounce: one carries out all requests, the other the last"
      }
    ]
  }
  if (triggers?.priority != null && triggers.concurrency === null && triggers.rate_limit === null) {
    const message = "has no effect without concurrency or rate_limit: no run waits for its turn"
    return [{ path: "triggers.priority", message }]
  }
  const answer = triggers?.answer ?? null
  if (answer === null) return []
  if (source_id === null) return [{ path: "triggers.answer", message: "has no effect: the workflow has no source" }]
  for (const setting of ["debounce", "batch"] as const) {
    if (triggers?.[setting] == null) continue
    const message = `cannot be used with ${setting}: its sender would wait for later requests`
    return [{ path: "triggers.answer", message }]
  }
  const ids = steps.map(({ id }) => id)
  return ids.includes(answer.step_id)
    ? []
    : [{ path: "triggers.answer.step_id", message: `names no step of the workflow${didYouMean(answer.step_id, ids)}` }]
}
