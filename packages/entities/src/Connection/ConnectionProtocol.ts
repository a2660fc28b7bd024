import { Schema } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Connection } from "@tidegate/model/Connection"
import { GatewayError } from "@tidegate/model/GatewayError"

const team = { team_id: Schema.String }

/** Commands of one connection, and `Wake`: there are pending routes to work off (a hint, may be lost). */
export const ConnectionEntity = Entity.make("Connection", [
  Rpc.make("Create", { payload: { ...team, input: Schema.Json }, success: Connection, error: GatewayError }),
  Rpc.make("Update", { payload: { ...team, input: Schema.Json }, success: Connection, error: GatewayError }),
  Rpc.make("Disable", { payload: team, success: Connection, error: GatewayError }),
  Rpc.make("Enable", { payload: team, success: Connection, error: GatewayError }),
  Rpc.make("Pause", { payload: team, success: Connection, error: GatewayError }),
  Rpc.make("Unpause", { payload: team, success: Connection, error: GatewayError }),
  Rpc.make("Delete", { payload: team, success: Schema.Struct({ id: Schema.String }), error: GatewayError }),
  Rpc.make("Wake").annotate(ClusterSchema.InterruptOnTermination, true)
])
