import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"

/*
 * The protocol between the process that a consumer's call has reached and the actor of its destination, on any runner.
 */

/** One attempt, on its way to a consumer. */
export const PulledMessage = Schema.Struct({
  /** The same for the same attempt, whichever process makes it and however often. */
  receipt: Schema.String,
  /** The message without its body: a JSON object, as text. */
  head: Schema.String,
  body: Schema.Uint8Array
})
export type PulledMessage = typeof PulledMessage.Type

/** `gone`: consumers do not fetch from the destination, or not any more; `busy`: too many calls wait already. */
export const Pulled = Schema.Struct({
  messages: Schema.Array(PulledMessage),
  /** Until when they may be settled (Unix ms). */
  leased_until: Schema.Int,
  refused: Schema.NullOr(Schema.Literals(["gone", "busy"]))
})
export type Pulled = typeof Pulled.Type

export const Pulling = Schema.Struct({
  max: Schema.Int,
  /** Bytes of bodies that it takes; one message may be larger. */
  room: Schema.Int,
  /** How long it waits for the first message (ms). */
  wait_ms: Schema.Int
})
export type Pulling = typeof Pulling.Type

/** `refusal`: why the consumer refuses these messages; null: it has accepted them. */
export const Settling = Schema.Struct({
  receipts: Schema.Array(Schema.String),
  refusal: Schema.NullOr(Schema.String)
})
export type Settling = typeof Settling.Type

/**
 * `Pull`: answered when there are messages, or after the wait. `Settle`: answered once the attempts are recorded. It returns the
 * receipts that are settled as the call says; all others are not leased any more, or were never.
 */
export const pullMessages = [
  Rpc.make("Pull", { payload: Pulling, success: Pulled }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Settle", { payload: Settling, success: Schema.Array(Schema.String) }).annotate(
    ClusterSchema.InterruptOnTermination,
    true
  )
] as const
