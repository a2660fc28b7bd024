import { Cause, Context, Effect, Layer, Semaphore } from "effect"
import { Feed } from "@tidegate/coordination/Feed"
import { capturedChannel } from "@tidegate/model/CapturedRequest"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { type Captured, captureInBin } from "@tidegate/storage/control/BinCapture"
import { type Database, isTransient } from "@tidegate/storage/Database"
import type { Accepted, RequestRecord } from "@tidegate/storage/Journal"

/** A bin that nobody has claimed, as far as a door knows it. */
export interface Bin {
  readonly expiresAt: number
  /** Until then it takes nothing, as the last answer for it said (Unix ms). */
  fullUntil: number
  /** When it was looked up last because it would have been refused (Unix ms). */
  lookedUpAt: number
}

export const newBin = (expiresAt: number): Bin => ({ expiresAt, fullUntil: 0, lookedUpAt: 0 })

/** How late a door may hear that a bin that takes nothing was claimed. */
const lookUpEveryMs = 500

/** Why a bin takes nothing: its sender is told, and nothing is stored. */
export interface BinRefusal {
  readonly code: Extract<ErrorCode, "BIN_EXPIRED" | "RATE_LIMITED">
  readonly message: string
  /** How long to wait; null: for ever. */
  readonly waitMs: number | null
}

/** Requests of bins that one process stores at once, and such that wait for it: they take turns with each other, and nobody else with them. */
const maxAtOnce = 3
const maxWaiting = 64

const expired: BinRefusal = { code: "BIN_EXPIRED", message: "this bin has expired", waitMs: null }

const full = (waitMs: number): BinRefusal => ({
  code: "RATE_LIMITED",
  message: `the bin takes no more requests now; repeat this one after ${Math.ceil(waitMs / 1_000)} s`,
  waitMs
})

/** Why the bin takes nothing at this time (Unix ms), as far as is known without asking; null: it may. */
export const binRefusal = ({ expiresAt, fullUntil }: Bin, now: number): BinRefusal | null => {
  if (now >= expiresAt) return expired
  return now < fullUntil ? full(fullUntil - now) : null
}

/** Whether to look it up before it refuses, because it may have been claimed since; not with every request of a flood. */
export const isLookUpDue = (bin: Bin, now: number): boolean => {
  if (Math.abs(now - bin.lookedUpAt) < lookUpEveryMs) return false
  bin.lookedUpAt = now
  return true
}

/** How requests of bins are stored. */
export class BinIngress extends Context.Service<
  BinIngress,
  {
    /** `done` is called once. "stale": it is a source by now, or gone. */
    readonly store: (bin: Bin, record: RequestRecord, done: (outcome: Accepted | BinRefusal) => void) => void
  }
>()("@tidegate/ingress/BinDoor") {
  static readonly layer: Layer.Layer<BinIngress, never, Database | Feed> = Layer.effect(
    BinIngress,
    Effect.gen(function* () {
      const feed = yield* Feed
      const run = Effect.runForkWith(yield* Effect.context<Database>())
      const inTurn = Semaphore.withPermit(Semaphore.makeUnsafe(maxAtOnce))
      let waiting = 0

      return BinIngress.of({
        store: (bin, record, done) => {
          if (waiting >= maxAtOnce + maxWaiting) return done(full(1_000))
          waiting++
          run(
            Effect.matchCauseEffect(inTurn(captureInBin(record)), {
              onSuccess: (captured) => {
                waiting--
                if (captured.kind === "full") bin.fullUntil = captured.until
                done(outcomeOf(captured, record.ingestedAt))
                return captured.kind === "stored"
                  ? feed.publish(capturedChannel(record.sourceId), record.id)
                  : Effect.void
              },
              onFailure: (cause) => {
                waiting--
                const error = Cause.findErrorOption(cause)
                // Who is not told that it is stored comes again, as with any source.
                done(error._tag === "Some" && isTransient(error.value) ? "unavailable" : "failed")
                return Effect.logError("a request of a bin could not be stored", { request_id: record.id }, cause)
              }
            })
          )
        }
      })
    })
  )
}

const outcomeOf = (captured: Captured, now: number): Accepted | BinRefusal => {
  if (captured.kind === "stored") return "committed"
  if (captured.kind === "moved") return "stale"
  return captured.kind === "expired" ? expired : full(Math.max(1, captured.until - now))
}
