import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { LatestInput } from "@tidegate/model/LatestInput"
import { reading } from "@tidegate/model/Permission"
import { connection, ConnectionUpsert } from "@tidegate/resources/Connection"
import { latestInput } from "../contract/Examples.ts"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Links from a source to a destination, with their rules. */
export class ConnectionsApi extends groupOf(connection, { list: Lists.connections, upsert: ConnectionUpsert }, [
  HttpApiEndpoint.get("latestInput", "/connections/:id/latest-input", {
    params: Parameters.pathOf("connection"),
    query: Parameters.onlyTeam,
    success: Schema.Struct({ connection_id: Schema.String, latest_input: Schema.NullOr(LatestInput) })
  }).annotateMerge(
    operation({
      id: "getLatestInput",
      permission: reading,
      summary: "The latest request its source accepted",
      description: "To try a filter or a transformation on; null when there is none.",
      answer: latestInput,
      errors: ["NOT_FOUND"]
    })
  )
]) {}
