import { Effect, type Fiber } from "effect"
import type { Verdict } from "@tidegate/connectors/Connector"
import { storeHold } from "@tidegate/storage/delivery/DestinationHolds"
import type { Database } from "@tidegate/storage/Database"
import type { Outcome } from "../sending/Attempt.ts"
import type { DeliveryQueue } from "./DeliveryQueue.ts"
import { heldUntil, longestHoldMs } from "./TargetHold.ts"

/** Shorter pauses (ms) are not stored: they are over before another owner of the destination continues. */
const minStoredMs = 5_000
/** Answers that arrive together name nearly the same time: the stored time is changed only by at least this much (ms). */
const minMovedMs = 1_000

interface Holding {
  readonly id: string
  readonly now: () => number
  readonly queue: Pick<DeliveryQueue, "hold" | "heldUntil">
  readonly run: <E>(effect: Effect.Effect<void, E, Database>) => Fiber.Fiber<void, E>
}

/**
 * Pauses the queue of a destination while its target says that it accepts nothing more. The time is stored for the next owner of
 * the destination. A change of the destination's settings removes it from the row and ends the pause.
 *
 * The stored time may be lost: then the next owner calls the target once, and gets the same answer.
 */
export const makeHolding = ({ id, now, queue, run }: Holding) => {
  /** The value that was written last or is being written; and the value that is known to be in the row. */
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
    /** A target has answered; called before the end of the attempt is reported. */
    heard: (outcome: Outcome, verdict: Verdict): void => {
      const at = now()
      const until = heldUntil(outcome, verdict, at)
      if (until === null || until <= queue.heldUntil) return
      queue.hold(until)
      if (until - at >= minStoredMs && until - written >= minMovedMs) store(until, outcome.status)
    },
    /** The value of the row (Unix ms; 0: none) as it was read. */
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
