import { Schema } from "effect"
import type { BatchLimits } from "@tidegate/runtime/Batcher"
import type { Answer, BatchCalls, PartResult, Verdict } from "./Connector.ts"
import type { Failure } from "./Failure.ts"
import { type FieldErrors, setting, type SettingsOf } from "./Settings.ts"

/** Several events in one call: the setting, and the results of the parts. */

/** The most that a service takes in one call. */
export type BatchMost = Pick<BatchLimits, "maxCount" | "maxBytes">

/** How long (ms) an event waits for other events: by default, and at most. */
const usualWaitMs = 50
const longestWaitMs = 5_000

const within = (minimum: number, maximum: number, description: string) => {
  const message = `must be a whole number from ${minimum} to ${maximum}`
  return Schema.optionalKey(
    Schema.Number.annotate({ message, description }).check(
      Schema.isInt({ message }).abort(),
      Schema.isBetween({ minimum, maximum }, { message })
    )
  )
}

/** The highest limits of all services. The API document shows these for every type; `faultsOfBatches` checks the limits of one service. */
const maxOfAny: BatchMost = { maxCount: 500, maxBytes: 10 * 1024 * 1024 }

/** The setting of types that send several events together. `more`: members that only the type has. */
export const batchSetting = <const More extends Schema.Struct.Fields>(more: More) => {
  const members = {
    max_count: within(2, maxOfAny.maxCount, "Events of a call at most; default: what the service takes"),
    max_bytes: within(
      1_024,
      maxOfAny.maxBytes,
      "Bytes of a call at most, as the service counts them; default: what the service takes. A larger event has its own call"
    ),
    max_wait_ms: within(
      1,
      longestWaitMs,
      `Milliseconds that an event waits for others at most; default: ${usualWaitMs}`
    )
  }
  const names = Object.keys({ ...members, ...more })
  const message = `must be an object with ${names.slice(0, -1).join(", ")} and ${names.at(-1)}, or null`
  return setting(
    Schema.Struct({ ...members, ...more }).annotate({
      message,
      description:
        "Sends several events with one call; null: each event has its own. Each event has its own attempts and result"
    }),
    null,
    message
  )
}

/** The setting of types whose services take several events in one call. */
export const batching = { batch: batchSetting({}) }

type Batching = SettingsOf<typeof batching>["batch"]

interface Batched {
  readonly batch: Batching
  readonly max_concurrency: number | null
}

/** The limits that the settings mean; null: there are no batches. */
export const batchLimits = ({ batch, max_concurrency }: Batched, most: BatchMost): BatchLimits | null =>
  batch === null
    ? null
    : {
        maxCount: batch.max_count ?? Math.min(most.maxCount, max_concurrency ?? most.maxCount),
        maxBytes: batch.max_bytes ?? most.maxBytes,
        maxWaitMs: batch.max_wait_ms ?? usualWaitMs
      }

/** Errors of settings with batches that the service would refuse, or that could never become full. */
export const faultsOfBatches = ({ batch, max_concurrency: atOnce }: Batched, most: BatchMost): FieldErrors => {
  if (batch === null) return []
  const fewest = batch.max_count ?? 2
  return [
    ...above("max_count", batch.max_count, most.maxCount),
    ...above("max_bytes", batch.max_bytes, most.maxBytes),
    ...(atOnce === null || fewest <= atOnce
      ? []
      : [
          {
            path: "config.max_concurrency",
            message: `must be null or at least ${fewest}, the events of a batch: they are under way together`
          }
        ])
  ]
}

const above = (name: string, value: number | undefined, most: number): FieldErrors =>
  value === undefined || value <= most
    ? []
    : [{ path: `config.batch.${name}`, message: `must be at most ${most}: the service takes no more in one call` }]

/**
 * Decides about a call that the service accepts or refuses as a whole. `isOfContent`: whether the content was the reason of the refusal, so that each
 * part has to be sent alone.
 */
export const judgeWhole =
  (
    judgeCall: (answer: Answer) => Verdict,
    isOfContent: (answer: Answer, failure: Failure) => boolean
  ): BatchCalls["judge"] =>
  (answer, count) => {
    const verdict = judgeCall(answer)
    if (verdict !== "successful" && count > 1 && isOfContent(answer, verdict)) return null
    return Array.from({ length: count }, () => ({ verdict, body: answer.body }))
  }

/**
 * Decides about the parts of a call. `judgeCall`: decides about a call that did not succeed as a whole. `isOfEveryPart`: whether each part would be
 * refused in the same way, so that none has to be sent alone. `resultsOf`: returns the result of the part with an index; undefined if the answer has
 * none. `judgePart`: decides about that result.
 */
export const judgeParts =
  <Result>({
    isOfEveryPart,
    judgeCall,
    judgePart,
    resultsOf
  }: {
    readonly judgeCall: (answer: Answer) => Verdict
    readonly isOfEveryPart: (answer: Answer) => boolean
    readonly resultsOf: (answer: Answer) => (place: number) => Result | undefined
    readonly judgePart: (answer: Answer, result: Result | undefined) => Verdict
  }): BatchCalls["judge"] =>
  (answer, count) => {
    if (answer.status < 200 || answer.status > 299) {
      return judgeWhole(judgeCall, (_, { final }) => final && !isOfEveryPart(answer))(answer, count)
    }
    const resultOf = resultsOf(answer)
    return Array.from({ length: count }, (_, place): PartResult => {
      const result = resultOf(place)
      const body = result === undefined ? answer.body : Buffer.from(JSON.stringify(result))
      return { verdict: judgePart(answer, result), body }
    })
  }
