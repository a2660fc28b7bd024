import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { Values } from "@tidegate/model/Message"

/** What a workflow step sends to a destination, and the result. */

const milliseconds = Schema.Finite

export const StepSend = Schema.Struct({
  team_id: Schema.String,
  workflow: Schema.Struct({ id: Schema.String, name: Schema.String }),
  run_id: Schema.String,
  step_id: Schema.String,
  /** The same for every attempt of the call, also after a crash. */
  key: Schema.String,
  attempt: Schema.Int,
  /** The value of `gateway-loop` for its request. */
  loop: Schema.String,
  /** For the call, from when it has its turn. */
  timeout_ms: milliseconds,
  /** Since when it waits for its turn (Unix ms). */
  since: milliseconds,
  request: Schema.Struct({
    id: Schema.String,
    source_id: Schema.String,
    source_name: Schema.String,
    method: Schema.String,
    path: Schema.String,
    query: Schema.String,
    headers: Values,
    body: Schema.Uint8Array,
    /** Encrypted, see `DeliveryPayload`. */
    presented: Schema.NullOr(Schema.String)
  })
})
export type StepSend = typeof StepSend.Type

export const StepSent = Schema.Union([
  Schema.Struct({
    kind: Schema.Literal("answered"),
    status: Schema.Int,
    headers: Values,
    body: Schema.Uint8Array,
    /** The answer was longer than what is kept. */
    truncated: Schema.Boolean,
    duration_ms: milliseconds
  }),
  Schema.Struct({
    kind: Schema.Literal("failed"),
    code: Schema.String,
    message: Schema.String,
    /** Another attempt would fail in the same way. */
    final: Schema.Boolean,
    status: Schema.NullOr(Schema.Int),
    retry_after_ms: Schema.NullOr(milliseconds),
    /** The answer; absent when there was none, and from an earlier version of this process. */
    answer: Schema.optionalKey(Schema.Struct({ headers: Values, body: Schema.Uint8Array, truncated: Schema.Boolean }))
  }),
  /** It has not had its turn: the caller has to send it again. */
  Schema.Struct({ kind: Schema.Literal("again") })
])
export type StepSent = typeof StepSent.Type

/**
 * `Send`: waits for its turn, and for the answer. A lost message is sent again: a target may get the call twice, with the same
 * key.
 */
export const stepMessages = [Rpc.make("Send", { payload: StepSend, success: StepSent })] as const
