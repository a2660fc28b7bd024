import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { RequestsSchema } from "./CarriedRequests.ts"

/**
 * The result of a request, as the journal has it; `full`: its source has as much in the journal as it may, and the process that received
 * the request commits it.
 */
export const Result = Schema.Literals(["committed", "stale", "unavailable", "failed", "full"])

/**
 * Commits requests that another process of the same host has received, and wakes the actors that have work by them. There is one
 * such entity per shard, so that a message to any of them reaches the runner that holds the shard. It has no state. A repeated
 * message changes nothing: the ids of requests are unique.
 */
export const CommitsEntity = Entity.make("Commits", [
  Rpc.make("Commit", { payload: { requests: RequestsSchema }, success: Schema.Array(Result) })
])
