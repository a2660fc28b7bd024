import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { connection } from "@tidegate/resources/Connection"
import { protocolOf } from "../Protocol.ts"
import { batchOf } from "../dispatch/Batch.ts"
import type { PendingRequest } from "./PendingRequest.ts"

/** `Route`: requests to work off; `Wake`: there are some. Both are wake-up notifications and may be lost. */
export const ConnectionEntity = protocolOf(connection, [
  Rpc.make("Route", { payload: { batch: batchOf<PendingRequest>() } }).annotate(
    ClusterSchema.InterruptOnTermination,
    true
  ),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
