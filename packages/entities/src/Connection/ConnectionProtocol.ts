import { ClusterSchema } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { connection } from "@tidegate/resources/Connection"
import { protocolOf } from "../Protocol.ts"

/** `Wake`: there are pending routes to work off (a hint, may be lost). */
export const ConnectionEntity = protocolOf(connection, [
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
