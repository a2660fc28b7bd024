import { Effect, type Fiber } from "effect"
import type { Verdict } from "@tidegate/connectors/Connector"
import { storeHold } from "@tidegate/storage/delivery/DestinationHolds"
import type { Database } from "@tidegate/storage/Database"
import type { Outcome } from "../sending/Attempt.ts"
import type { DeliveryQueue } from "./DeliveryQueue.ts"
import { heldUntil, longestHoldMs } from "./TargetHold.ts"

/** Shorter holds (ms) are not stored: they are over by the time that another owner of the destination goes on. */
const minStoredMs = 5_000
/** Answers that come together say nearly the same: what is stored is moved by this much at least (ms). */
const minMovedMs = 1_000

interface Holding {
  readonly id: string
  readonly now: () => number
  readonly queue: Pick<DeliveryQueue, "hold" | "heldUntil">
  readonly run: <E>(effect: Effect.Effect<void, E, Database>) => Fiber.Fiber<void, E>
}

/**
 * Holds the queue of a destination for as long as its target says that it takes nothing more, and has that stored, for whoever owns the
 * destination next. A change of the destination's settings lifts it: it takes it out of the row.
 *
 * What is stored may be lost: then the next owner asks the target once, and is told again.
 */
export const makeHolding = ({ id, now, queue, run }: Holding) => {
  /** What was written last, or is being written; and what is known to be in the row. */
  let written = 0
  let stored = 0

  const store = (until: number, status: number | null): void => {
    written = until
    run(
      storeHold(id, until).pipe(
        Effect.andThen(
          Effect.logInfo("a destination is held: its target takes nothing more for now", {
            destination_id: id,
            response_status: status,
            until: new Date(until).toISOString()
          })
        ),
        Effect.andThen(
          Effect.sync(() => {
            stored = Math.max(stored, until)
          })
        ),
        Effect.catch((error) => Effect.logWarning("a hold of a destination could not be stored", { id, error }))
      )
    )
  }

  return {
    isHeld: (): boolean => queue.heldUntil > now(),
    /** What a target has answered, before the end of the attempt is told. */
    heard: (outcome: Outcome, verdict: Verdict): void => {
      const at = now()
      const until = heldUntil(outcome, verdict, at)
      if (until === null || until <= queue.heldUntil) return
      queue.hold(until)
      if (until - at >= minStoredMs && until - written >= minMovedMs) store(until, outcome.status)
    },
    /** What the row says (Unix ms, 0: nothing), as it was read. */
    read: (until: number): void => {
      const isLifted = until === 0 && stored > now()
      stored = until
      if (isLifted) {
        written = 0
        queue.hold(0)
      } else if (until > now() && until > queue.heldUntil) queue.hold(Math.min(until, now() + longestHoldMs))
    }
  }
}
