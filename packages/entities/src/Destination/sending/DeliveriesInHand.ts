import { Clock, Effect, type Fiber, Latch } from "effect"
import type { Database } from "@tidegate/storage/Database"
import { Hand, type Weighed } from "../../InHand.ts"
import type { DeliveryItem } from "../queue/DeliveryItem.ts"

/** A delivery that is recorded as work in hand, or waits for that. */
interface Entry {
  fiber: Fiber.Fiber<void> | null
  begun: boolean
  isSetAside: boolean
  /** Opened when the delivery has ended. */
  readonly over: Latch.Latch
}

const workOf = ({ eventId, payload, teamId }: DeliveryItem): Weighed => ({
  kind: "event",
  id: eventId,
  team_id: teamId,
  bytes: payload.body.length
})

/**
 * The deliveries of a destination that are recorded as work in hand while they are under way: see `InHand.ts`. Fails closed: a
 * delivery that cannot be recorded is not started.
 */
export const makeDeliveriesInHand = Effect.fnUntraced(function* (destinationId: string) {
  const hand = yield* Hand
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<Database>())
  const entries = new Map<string, Entry>()

  /** Records the delivery, and waits when it has to run alone; then calls `begin` once with whether it may start. */
  const take = (item: DeliveryItem, begin: (may: boolean) => void): void => {
    const work = workOf(item)
    const entry: Entry = { fiber: null, begun: false, isSetAside: false, over: Latch.makeUnsafe() }
    entries.set(work.id, entry)
    const underWay = Effect.suspend(() => {
      entry.begun = true
      begin(true)
      return entry.over.await
    })
    const carried = Effect.flatMap(hand.take([work]), (mannerOf) => {
      const manner = mannerOf(work)
      if (manner !== "set aside") return hand.within(work, manner, underWay)
      entry.isSetAside = true
      return Effect.andThen(underWay, hand.done(work))
    })
    entry.fiber = fork(
      carried.pipe(
        Effect.catch((error) =>
          Effect.logWarning("a delivery could not be recorded as work in hand: it waits", {
            destination_id: destinationId,
            error
          })
        ),
        Effect.ensuring(
          Effect.sync(() => {
            if (entries.get(work.id) === entry) entries.delete(work.id)
            if (!entry.begun) begin(false)
          })
        )
      )
    )
  }

  return {
    /** Whether it has to be recorded before it begins. */
    isWanted: (item: DeliveryItem): boolean => !hand.isPlain(workOf(item), clock.currentTimeMillisUnsafe()),
    take,
    /** Whether processes have died with it so often that it is not started again. */
    isSetAside: ({ eventId }: DeliveryItem): boolean => entries.get(eventId)?.isSetAside === true,
    /** It has ended, or does not begin. */
    over: ({ eventId }: DeliveryItem): void => void entries.get(eventId)?.over.openUnsafe(),
    /** Those that have not begun do not begin any more. */
    stop: (): void => {
      for (const { begun, fiber } of entries.values()) if (!begun) fiber?.interruptUnsafe()
    },
    /** Interrupts everything that is under way, although none of it was the cause. */
    cancel: (): void => {
      for (const { fiber } of entries.values()) fiber?.interruptUnsafe()
    }
  }
})
