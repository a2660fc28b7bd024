import { Schema } from "effect"
import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"

/*
 * The protocol between the process that a tunnel's client is connected to and the actor of its destination, on any runner. The
 * process polls for jobs and reports results. A poll that is lost, or whose answer is lost, is repeated: jobs that the process
 * does not list as held are handed out again.
 */

/** One attempt, on its way to a tunnel's client. */
export const TunnelJob = Schema.Struct({
  /** The same for the same attempt, whichever process makes it and however often. */
  job_id: Schema.String,
  timeout_ms: Schema.Int,
  /** The request without its body: a JSON object, as text. */
  request: Schema.String,
  body: Schema.Uint8Array
})
export type TunnelJob = typeof TunnelJob.Type

/** A client's answer, judged and cut to size by the process that it is connected to. */
export const TunnelResult = Schema.Struct({
  job_id: Schema.String,
  /** Null: the client's answer could not be understood. */
  status: Schema.NullOr(Schema.Int),
  headers: Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  body: Schema.Uint8Array,
  body_truncated: Schema.Boolean,
  /** Why there is no answer of the local target. */
  failure: Schema.NullOr(Schema.Struct({ code: Schema.Literals(["CLI", "PROTOCOL_ERROR"]), message: Schema.String }))
})
export type TunnelResult = typeof TunnelResult.Type

/** `replaced`: a newer session has taken over; `gone`: the destination does not exist any more. */
export const SessionEnd = Schema.Literals(["replaced", "gone"])
export type SessionEnd = typeof SessionEnd.Type

export const Heard = Schema.Struct({ jobs: Schema.Array(TunnelJob), ended: Schema.NullOr(SessionEnd) })
export type Heard = typeof Heard.Type

export const Listening = Schema.Struct({
  cli_id: Schema.String,
  /** The address of the client's own target; null: the client has not named it. */
  local_url: Schema.NullOr(Schema.String),
  /** The jobs whose results the actor has not confirmed yet. */
  holding: Schema.Array(Schema.String),
  /** Bytes of bodies that it accepts; one job may be larger. 0: nothing is handed out. */
  room: Schema.Int
})
export type Listening = typeof Listening.Type

/**
 * `Attach`: a client has connected and replaces any other. Null: the destination does not use a tunnel. `Listen`: answered when
 * there is something to deliver, or after a while; the session ends when it does not poll for longer than that. `Answer`: returns
 * how many of the results belong to nothing that is under way. `Leave`: the client is gone.
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
