import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { Transformation } from "@tidegate/model/Transformation"
import { TransformationRun } from "@tidegate/model/TransformationRun"

const team = { team_id: Schema.String }
const write = { payload: { ...team, input: Schema.Json }, success: Transformation, error: GatewayError }

/**
 * Commands of one transformation; the entity id is the transformation's id, `team_id` has to be its team's. When a change
 * has answered, every request that is worked off later is made by what it stored. Code that does not compile is
 * TRANSFORMATION_INVALID, with `line` and `message` in the data.
 *
 * `Update` writes a part, `Upsert` name and code in any case: what either leaves out stays. `Run` runs the stored code, or the code in the input (then the entity id is
 * any transformation id that is not in use), against a sample; nothing is stored.
 */
export const TransformationEntity = Entity.make("Transformation", [
  Rpc.make("Create", write),
  Rpc.make("Update", write),
  Rpc.make("Upsert", write),
  Rpc.make("Delete", { payload: team, success: Schema.Struct({ id: Schema.String }), error: GatewayError }),
  Rpc.make("Run", { payload: { ...team, input: Schema.Json }, success: TransformationRun, error: GatewayError })
])
