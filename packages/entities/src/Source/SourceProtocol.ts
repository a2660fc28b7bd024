import { Schema } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { GatewayError } from "@tidegate/model/GatewayError"
import { Source } from "@tidegate/model/Source"

const team = { team_id: Schema.String }

/**
 * Commands of one source; the entity id is the source's id, `team_id` has to be its team's. Each answers with the record
 * as stored. When it has answered, every later request is handled by what it stored.
 */
export const SourceEntity = Entity.make("Source", [
  Rpc.make("Create", { payload: { ...team, input: Schema.Json }, success: Source, error: GatewayError }),
  Rpc.make("Update", { payload: { ...team, input: Schema.Json }, success: Source, error: GatewayError }),
  Rpc.make("Disable", { payload: team, success: Source, error: GatewayError }),
  Rpc.make("Enable", { payload: team, success: Source, error: GatewayError }),
  /** A secret that the sender has announced: becomes `webhook_secret_key`, unless the source has another one already. */
  Rpc.make("RememberSecret", {
    payload: { ...team, secret: Schema.RedactedFromValue(Schema.String) },
    success: Source,
    error: GatewayError
  }),
  Rpc.make("Delete", { payload: team, success: Schema.Struct({ id: Schema.String }), error: GatewayError })
])
