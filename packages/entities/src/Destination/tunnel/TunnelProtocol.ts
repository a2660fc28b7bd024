import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"

/*
 * Between the process that a tunnel's client is connected to and the actor of its destination, wherever that is: the process asks
 * for what is to be delivered, again and again, and says what was answered. A question that is lost, or whose answer is, is asked
 * again: what the process does not say it holds is handed out anew.
 */

/** One attempt, on its way to a tunnel's client. */
export const TunnelJob = Schema.Struct({
  /** The same for the same attempt, whoever makes it, however often. */
  job_id: Schema.String,
  timeout_ms: Schema.Int,
  /** The request without its body: a JSON object, as text. */
  request: Schema.String,
  body: Schema.Uint8Array
})
export type TunnelJob = typeof TunnelJob.Type

/** What a client has answered, judged and cut by the process that it is connected to. */
export const TunnelResult = Schema.Struct({
  job_id: Schema.String,
  /** Null: it has said nothing that can be understood. */
  status: Schema.NullOr(Schema.Int),
  headers: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  body: Schema.Uint8Array,
  body_truncated: Schema.Boolean,
  /** Why there is no answer of the local target. */
  failure: Schema.NullOr(Schema.Struct({ code: Schema.Literals(["CLI", "PROTOCOL_ERROR"]), message: Schema.String }))
})
export type TunnelResult = typeof TunnelResult.Type

/** `replaced`: a newer session has taken over; `gone`: there is no such destination any more. */
export const SessionEnd = Schema.Literals(["replaced", "gone"])
export type SessionEnd = typeof SessionEnd.Type

export const Heard = Schema.Struct({ jobs: Schema.Array(TunnelJob), ended: Schema.NullOr(SessionEnd) })
export type Heard = typeof Heard.Type

export const Listening = Schema.Struct({
  cli_id: Schema.String,
  /** Where the client's own target is; null: it has not said. */
  local_url: Schema.NullOr(Schema.String),
  /** The jobs whose results the actor has not confirmed yet. */
  holding: Schema.Array(Schema.String),
  /** Bytes of bodies that are taken; one job may have more. None: nothing is handed out. */
  room: Schema.Int
})
export type Listening = typeof Listening.Type

/**
 * `Attach`: a client has come, and takes over from any other. Null: the destination is none that a tunnel leads to. `Listen`: answered
 * when there is something to deliver, or after a while; the session ends when it is not heard from for longer. `Answer`: says how many of
 * the results were for nothing that is under way. `Leave`: the client has gone.
 */
export const tunnelMessages = [
  Rpc.make("Attach", {
    payload: { local_url: Schema.NullOr(Schema.String) },
    success: Schema.NullOr(Schema.String)
  }),
  Rpc.make("Listen", { payload: Listening, success: Heard }).annotate(ClusterSchema.InterruptOnTermination, true),
  Rpc.make("Answer", {
    payload: { cli_id: Schema.String, results: Schema.Array(TunnelResult) },
    success: Schema.Int
  }),
  Rpc.make("Leave", { payload: { cli_id: Schema.String } })
] as const
