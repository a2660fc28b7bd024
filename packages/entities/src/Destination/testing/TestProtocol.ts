import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { DestinationTest } from "@tidegate/model/DestinationTest"
import { GatewayError } from "@tidegate/model/GatewayError"
import { DestinationTestMessage } from "@tidegate/resources/DestinationTest"
import { carried } from "../../Protocol.ts"

/** `Test`: makes one delivery with settings that are not stored, and answers with its result. Nothing is recorded. */
export const testMessages = [
  Rpc.make("Test", {
    payload: { team_id: Schema.String, input: carried(DestinationTestMessage) },
    success: DestinationTest,
    error: GatewayError
  })
] as const
