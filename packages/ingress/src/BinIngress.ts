import { Cause, Context, Effect, Layer, Semaphore } from "effect"
import { Feed } from "@tidegate/coordination/Feed"
import { capturedChannel } from "@tidegate/model/CapturedRequest"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { type Captured, captureInBin } from "@tidegate/storage/control/BinCapture"
import { type Database, isTransient } from "@tidegate/storage/Database"
import type { Accepted, RequestRecord } from "@tidegate/storage/Journal"

/** A bin that nobody has claimed, as cached by ingress. */
export interface Bin {
  readonly expiresAt: number
  /** The bin accepts no requests before this time, according to the last store result (Unix ms). */
  fullUntil: number
  /** When the bin was last looked up before a refusal (Unix ms). */
  lookedUpAt: number
}

export const newBin = (expiresAt: number): Bin => ({ expiresAt, fullUntil: 0, lookedUpAt: 0 })

/** Milliseconds. If a full or expired bin is claimed, ingress notices it at most this late. */
const lookUpEveryMs = 500

/** Why a bin accepts no request. The sender gets this answer, and nothing is stored. */
export interface BinRefusal {
  readonly code: Extract<ErrorCode, "BIN_EXPIRED" | "RATE_LIMITED">
  readonly message: string
  /** Milliseconds to wait; null: the bin never accepts requests again. */
  readonly waitMs: number | null
}

/**
 * Bin requests that one process stores at once, and bin requests that may wait. Bins take turns with each other only, so sources do not wait
 * for them.
 */
const maxAtOnce = 3
const maxWaiting = 64

const expired: BinRefusal = { code: "BIN_EXPIRED", message: "this bin has expired", waitMs: null }

const full = (waitMs: number): BinRefusal => ({
  code: "RATE_LIMITED",
  message: `the bin takes no more requests now; repeat this one after ${Math.ceil(waitMs / 1_000)} s`,
  waitMs
})

/** Why the cached bin accepts no request at `now` (Unix ms); null if it may accept one. */
export const binRefusal = ({ expiresAt, fullUntil }: Bin, now: number): BinRefusal | null => {
  if (now >= expiresAt) return expired
  return now < fullUntil ? full(fullUntil - now) : null
}

/**
 * Whether to look the bin up before refusing, because it may have been claimed since. Limited, so that a flood does not look it up with every
 * request.
 */
export const isLookUpDue = (bin: Bin, now: number): boolean => {
  if (Math.abs(now - bin.lookedUpAt) < lookUpEveryMs) return false
  bin.lookedUpAt = now
  return true
}

/** Stores requests of bins. */
export class BinIngress extends Context.Service<
  BinIngress,
  {
    /** `done` is called once. "stale": the bin has become a source, or is gone. */
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
                // Fails as with any source: a sender without a success answer sends again.
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
