import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { TransformationRun, TransformationValidation } from "@tidegate/model/TransformationRun"
import { transformation } from "@tidegate/resources/Transformation"
import { runBody, validationBody } from "@tidegate/resources/TransformationRun"
import { protocolOf } from "../Protocol.ts"

/**
 * Code that does not compile is TRANSFORMATION_INVALID, with `line` and `message` in the data. `Run` runs code over a sample and
 * stores nothing: the stored code, or the code in the input (then the entity id is any transformation id that is not in use).
 * `Validate` compiles the code in the input and runs nothing.
 */
export const TransformationEntity = protocolOf(transformation, [
  Rpc.make("Run", {
    payload: { team_id: Schema.String, input: runBody.message },
    success: TransformationRun,
    error: GatewayError
  }),
  Rpc.make("Validate", {
    payload: { team_id: Schema.String, input: validationBody.message },
    success: TransformationValidation,
    error: GatewayError
  })
])
