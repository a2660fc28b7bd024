import { Clock, Context, Effect, Layer, Queue } from "effect"
import type { Database } from "@tidegate/storage/Database"
import { writeDecisions } from "@tidegate/storage/teams/KeyAudit"
import { AuditCounts, type Decision } from "./AuditCounts.ts"

/** Kinds of decisions that a process counts at a time: some hundred bytes each. */
const maxCounts = 20_000
/** Rows of one statement. */
const writtenAtOnce = 1_000
const everyMs = 1_000
/** A denial is written at once, but a flood of them together. */
const soonMs = 50
/** The final write when the process ends must not delay its end for longer. */
const lastMs = 2_000

/**
 * The audit of decisions about keys. They are counted in memory and written in the background, once a second, and soon after a
 * denial. A killed process loses at most a second's counts. Fails open: while the database does not answer, calls fail anyway,
 * and the counts are written later.
 */
export class KeyAudit extends Context.Service<
  KeyAudit,
  {
    readonly note: (decision: Decision) => Effect.Effect<void>
  }
>()("@tidegate/api/KeyAudit") {
  static readonly layer: Layer.Layer<KeyAudit, never, Database> = Layer.effect(
    KeyAudit,
    Effect.gen(function* () {
      const database = yield* Effect.context<Database>()
      const counts = new AuditCounts(maxCounts)
      const due = yield* Queue.sliding<null>(1)
      let isUrgent = false

      const write = Effect.gen(function* () {
        const counted = counts.due()
        for (let at = 0; at < counted.length; at += writtenAtOnce) {
          const some = counted.slice(at, at + writtenAtOnce)
          yield* Effect.provideContext(writeDecisions(some), database)
          counts.written(some, yield* Clock.currentTimeMillis)
        }
        if (counts.lost > 0) {
          yield* Effect.logWarning("decisions about keys were not written down: there were too many kinds", {
            lost: counts.lost
          })
          counts.lost = 0
        }
      })
      // Counts that could not be written are written the next time.
      const writeAll = Effect.ignore(
        Effect.onError(write, () => Effect.sync(() => Queue.offerUnsafe(due, null))),
        { log: "Warn" }
      )

      // Registered before the fiber below, so that it runs after the fiber has ended.
      yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(writeAll, lastMs)))
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.gen(function* () {
            yield* Queue.take(due)
            // Waits for the next time, or until something is denied.
            if (!isUrgent) {
              yield* Effect.raceFirst(Effect.sleep(everyMs), Effect.repeat(Queue.take(due), { until: () => isUrgent }))
            }
            isUrgent = false
            yield* writeAll
            yield* Effect.sleep(soonMs)
          })
        )
      )
      return KeyAudit.of({
        note: (decision) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            counts.note(decision, now)
            if (decision.decision === "denied") isUrgent = true
            Queue.offerUnsafe(due, null)
          })
      })
    })
  )
}
