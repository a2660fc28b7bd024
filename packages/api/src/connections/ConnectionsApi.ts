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
      summary: "Retrieve the latest request of a connection's source",
      description:
        "Returns the latest accepted request, as a sample for a filter or a transformation. Null if there is none.",
      answer: latestInput,
      errors: ["NOT_FOUND"]
    })
  )
]) {}
