import { Schema } from "effect"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { source } from "@tidegate/resources/Source"
import { protocolOf } from "../Protocol.ts"

/** `RememberSecret`: the sender has announced a secret: it becomes `webhook_secret_key`, unless the source has another one already. */
export const SourceEntity = protocolOf(source, [
  Rpc.make("RememberSecret", {
    payload: { team_id: Schema.String, secret: Schema.RedactedFromValue(Schema.String) },
    success: source.record,
    error: GatewayError
  })
])
