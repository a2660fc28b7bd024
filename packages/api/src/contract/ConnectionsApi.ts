import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Connection } from "@tidegate/model/Connection"
import { ResourceList } from "@tidegate/model/Envelope"
import { LatestInput } from "@tidegate/model/LatestInput"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import * as Parameters from "./Parameters.ts"
import { ConnectionPatch, ConnectionUpsert, ConnectionWrite } from "./WriteBodies.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam, success: Connection }
const patch = { ...one, payload: ConnectionPatch }
const about = (summary: string) => OpenApi.annotations({ summary })

/** Links from a source to a destination, with their rules. */
export class ConnectionsApi extends HttpApiGroup.make("connections")
  .add(
    HttpApiEndpoint.get("list", "/connections", {
      query: Parameters.connections,
      success: ResourceList(Connection)
    }).annotateMerge(about("List connections")),
    HttpApiEndpoint.post("create", "/connections", {
      query: Parameters.onlyTeam,
      payload: ConnectionWrite,
      success: Connection
    }).annotateMerge(about("Create a connection")),
    HttpApiEndpoint.put("upsert", "/connections", {
      query: Parameters.onlyTeam,
      payload: ConnectionUpsert,
      success: Connection
    }).annotateMerge(about("Create or update a connection, by its id or by its source and name")),
    HttpApiEndpoint.get("retrieve", "/connections/:id", one).annotateMerge(about("Retrieve a connection")),
    HttpApiEndpoint.patch("update", "/connections/:id", patch).annotateMerge(about("Update a connection in part")),
    HttpApiEndpoint.put("updateByPut", "/connections/:id", patch).annotateMerge(about("Update a connection in part")),
    HttpApiEndpoint.get("latestInput", "/connections/:id/latest-input", {
      ...one,
      success: Schema.Struct({ connection_id: Schema.String, latest_input: Schema.NullOr(LatestInput) })
    }).annotateMerge(about("The latest request its source received")),
    HttpApiEndpoint.put("pause", "/connections/:id/pause", one).annotateMerge(about("Hold what it delivers")),
    HttpApiEndpoint.post("pauseByPost", "/connections/:id/pause", one).annotateMerge(about("Hold what it delivers")),
    HttpApiEndpoint.put("unpause", "/connections/:id/unpause", one).annotateMerge(about("Deliver what was held")),
    HttpApiEndpoint.post("unpauseByPost", "/connections/:id/unpause", one).annotateMerge(
      about("Deliver what was held")
    ),
    HttpApiEndpoint.put("disable", "/connections/:id/disable", one).annotateMerge(about("Stop routing")),
    HttpApiEndpoint.post("disableByPost", "/connections/:id/disable", one).annotateMerge(about("Stop routing")),
    HttpApiEndpoint.put("enable", "/connections/:id/enable", one).annotateMerge(about("Route again")),
    HttpApiEndpoint.post("enableByPost", "/connections/:id/enable", one).annotateMerge(about("Route again")),
    HttpApiEndpoint.delete("delete", "/connections/:id", { ...one, success: Deleted }).annotateMerge(
      about("Delete a connection")
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Connections", description: "What goes from where to where, and how." })
  ) {}
