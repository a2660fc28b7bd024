import { Effect } from "effect"
import { Journal } from "@tidegate/storage/Journal"
import { Tracing } from "@tidegate/telemetry/Tracing"
import { recordOf, retryOf } from "./Attempt.ts"
import type { DeliveryItem } from "../queue/DeliveryItem.ts"
import type { DeliveryQueue } from "../queue/DeliveryQueue.ts"
import type { Ends } from "./AttemptEnding.ts"
import { Loops } from "../../Loops.ts"

interface Recording {
  readonly id: string
  readonly now: () => number
  readonly queue: Pick<DeliveryQueue, "ended" | "handedOut" | "recorded" | "abandoned" | "returned" | "lost">
  /**
   * Nothing more happens for an attempt: it is recorded, or belongs to another owner, or is not to be made. `isRecorded`: it is
   * recorded as it has ended here.
   */
  readonly noLonger: (item: DeliveryItem, isRecorded: boolean) => void
  /** A consumer has it: the process has no more work with it until it is settled. */
  readonly handedOut: (item: DeliveryItem) => void
}

/** Records how attempts to deliver events have ended, and reports the result to the queue. */
export const makeRecording = Effect.fnUntraced(function* ({ handedOut, id, noLonger, now, queue }: Recording) {
  const journal = yield* Journal
  const tracing = yield* Tracing
  const loops = yield* Loops
  return {
    finished: (attempt, outcome, verdict, how) => {
      const { item } = attempt
      // The answer's time is rounded, and an attempt does not end before it.
      const finishedAt = Math.max(now(), outcome.respondedAt)
      const made = recordOf(attempt, id, outcome, verdict, finishedAt, Math.random())
      const isSilent = !made.successful && loops.isSystem(item.payload.headers, item.teamId)
      const record = isSilent ? { ...made, silent: true } : made
      // The next event of its key, or the client that has reported the end, waits for the record.
      const isAwaited = item.orderingKey !== null || attempt.cliId !== null || item.isBodiless === true
      journal.record(record, isAwaited, (recorded) => {
        noLonger(item, recorded !== "superseded")
        if (recorded === "superseded") queue.recorded(item, { kind: "superseded" })
        else if (recorded === "PENDING" && record.retryAt !== null) {
          queue.recorded(item, { kind: "retry", item: retryOf(item, record, record.retryAt) })
        } else queue.recorded(item, { kind: "finished" })
      })
      tracing.attempted(attempt.trace, attempt.startedAt, record)
      // The journal calls back later.
      queue.ended(item, how)
    },
    handedOut: (attempt) => {
      handedOut(attempt.item)
      attempt.item = queue.handedOut(attempt.item)
    },
    abandoned: ({ item }) => {
      noLonger(item, false)
      queue.abandoned(item)
    },
    returned: ({ item }) => {
      noLonger(item, false)
      queue.returned(item)
    },
    lost: ({ item }) => {
      noLonger(item, false)
      queue.lost(item)
    }
  } satisfies Ends
})
