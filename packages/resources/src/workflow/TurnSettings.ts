import { Result, Schema } from "effect"
import { maxPathLength } from "@tidegate/json/JsonPath"
import { RatePeriod, ratePeriodMs } from "@tidegate/model/Destination"
import { mostPriority } from "@tidegate/model/WorkflowTriggers"
import { compileOrdering } from "@tidegate/rules/Ordering"
import { largestBatch } from "@tidegate/workflows/triggers/Batch"
import { usualPriority } from "@tidegate/workflows/triggers/Priority"
import { OneOf, optional, text } from "../Members.ts"

/** Settings of a workflow that let its runs wait before they begin, as they are written. */

/** A path to the value by which runs belong together. */
export const KeyPath = text
  .check(
    Schema.makeFilter(
      (path: string) =>
        Result.match(compileOrdering(path), { onSuccess: () => true, onFailure: ({ message }) => message }),
      { toJsonSchema: () => ({ maxLength: maxPathLength, pattern: String.raw`^(\$\.)?(body|headers|query)[.\[]` }) }
    )
  )
  .annotate({ description: "A path to one value of what began the run, in its body, headers or query" })

const maxAtOnce = 1_000
const limitMessage = `must be a whole number from 1 to ${maxAtOnce}`

export const ConcurrencyWrite = Schema.NullOr(
  Schema.Struct({
    limit: Schema.Number.annotate({ description: "Runs that have begun and not ended" }).check(
      Schema.isInt({ message: limitMessage }).abort(),
      Schema.isBetween({ minimum: 1, maximum: maxAtOnce }, { message: limitMessage })
    ),
    key: optional(
      Schema.NullOr(KeyPath).annotate({
        description:
          "The limit holds for the runs with the same value there; runs without a value belong together. Null: it holds for all runs"
      })
    )
  }).annotate({ identifier: "WorkflowConcurrencyWrite" })
).annotate({
  message: "must be an object with a limit, or null",
  description:
    "Runs beyond the limit wait, and begin in the order of their arrival as others end. Null: all begin at once"
})

/** Starts in a second. Each is a commit of its own, and a workflow's runs begin in one process. */
const fastest = 100
const maxStarts = 100_000
const countMessage = `must be a whole number from 1 to ${maxStarts}, and at most ${fastest} a second`

export const RateLimitWrite = Schema.NullOr(
  Schema.Struct({
    count: Schema.Number.annotate({ description: "Runs that begin in a period" }).check(
      Schema.isInt({ message: countMessage }).abort(),
      Schema.isBetween({ minimum: 1, maximum: maxStarts }, { message: countMessage })
    ),
    period: OneOf(RatePeriod.literals)
  })
    .annotate({ message: "must be an object with a count and a period" })
    .check(
      Schema.makeFilter(
        ({ count, period }) =>
          (count * 1_000) / ratePeriodMs[period] <= fastest || { path: ["count"], issue: countMessage },
        { toJsonSchema: () => ({}) }
      )
    )
    .annotate({ identifier: "WorkflowRateLimitWrite" })
).annotate({
  message: "must be an object with a count and a period, or null",
  description:
    "How many runs begin in a second, minute, hour or day. The others wait, and begin in the order of their arrival. Null: there is no such limit"
})

const priorityMessage = `must be a whole number from -${mostPriority} to ${mostPriority}`

export const PriorityWrite = Schema.NullOr(
  Schema.Struct({
    key: KeyPath,
    default: optional(
      Schema.Number.annotate({
        description: `The priority of a run whose value at \`key\` is not a whole number. Default: ${usualPriority}`
      }).check(
        Schema.isInt({ message: priorityMessage }).abort(),
        Schema.isBetween({ minimum: -mostPriority, maximum: mostPriority }, { message: priorityMessage })
      )
    )
  }).annotate({ identifier: "WorkflowPriorityWrite" })
).annotate({
  message: "must be an object with a key, or null",
  description: `Of the runs that wait because of \`concurrency\` or \`rate_limit\`, those with the highest number at \`key\` (-${mostPriority} to ${mostPriority}) begin first. Null: they begin in the order of their arrival`
})

const [shortestWait, longestWait, longestOfAll] = [1_000, 3_600_000, 86_400_000]
const waitMessage = `must be a whole number from ${shortestWait} to ${longestWait}`
const maxWaitMessage = `must be a whole number from ${shortestWait} to ${longestOfAll}, and at least wait_ms`

/** With this many times its wait, a key on which something always comes is carried out now and then. */
const waits = 10

export const maxWaitOf = ({
  max_wait_ms,
  wait_ms
}: {
  readonly max_wait_ms?: number | undefined
  readonly wait_ms: number
}): number => max_wait_ms ?? Math.min(waits * wait_ms, longestOfAll)

/** What runs have in common that wait for each other. */
const GroupKey = optional(
  Schema.NullOr(KeyPath).annotate({
    description:
      "Runs with the same value there belong together; a run without a value is carried out at once. Null: all runs belong together"
  })
)

export const DebounceWrite = Schema.NullOr(
  Schema.Struct({
    key: GroupKey,
    wait_ms: Schema.Number.annotate({ description: "How long nothing may have come, in milliseconds" }).check(
      Schema.isInt({ message: waitMessage }).abort(),
      Schema.isBetween({ minimum: shortestWait, maximum: longestWait }, { message: waitMessage })
    ),
    max_wait_ms: optional(
      Schema.Number.annotate({
        description: `How long the first run waits at most, in milliseconds. Default: ${waits} times \`wait_ms\``
      }).check(
        Schema.isInt({ message: maxWaitMessage }).abort(),
        Schema.isBetween({ minimum: shortestWait, maximum: longestOfAll }, { message: maxWaitMessage })
      )
    )
  })
    .annotate({ message: "must be an object with a wait_ms" })
    .check(
      Schema.makeFilter(
        (written) => maxWaitOf(written) >= written.wait_ms || { path: ["max_wait_ms"], issue: maxWaitMessage },
        { toJsonSchema: () => ({}) }
      )
    )
    .annotate({ identifier: "WorkflowDebounceWrite" })
).annotate({
  message: "must be an object with a wait_ms, or null",
  description:
    "Of runs that come soon after each other the last one is carried out; the outcome of the others is `superseded`. Null: every run is carried out"
})

const batchMessage = `must be a whole number from 2 to ${largestBatch}`
const batchWindowMessage = `must be a whole number from ${shortestWait} to ${longestWait}`

/** Requests of a batch, if the setting does not say. */
export const usualBatch = 100

export const BatchWrite = Schema.NullOr(
  Schema.Struct({
    key: GroupKey,
    max_count: optional(
      Schema.Number.annotate({
        description: `The batch closes when it has so many requests. Default: ${usualBatch}`
      }).check(
        Schema.isInt({ message: batchMessage }).abort(),
        Schema.isBetween({ minimum: 2, maximum: largestBatch }, { message: batchMessage })
      )
    ),
    window_ms: Schema.Number.annotate({
      description: "How long after its first request the batch closes at the latest, in milliseconds"
    }).check(
      Schema.isInt({ message: batchWindowMessage }).abort(),
      Schema.isBetween({ minimum: shortestWait, maximum: longestWait }, { message: batchWindowMessage })
    )
  })
    .annotate({ message: "must be an object with a window_ms" })
    .annotate({ identifier: "WorkflowBatchWrite" })
).annotate({
  message: "must be an object with a window_ms, or null",
  description:
    "The first of the runs that come within the window carries out the requests of all of them, in `trigger.batch`; the outcome of the others is `batched`. Null: every run is carried out"
})
