import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ResourceList } from "@tidegate/model/Lists"
import { LatestInput } from "@tidegate/model/LatestInput"
import { Authorization } from "./Authorization.ts"
import { ConnectionPatch, ConnectionRecord, ConnectionUpsert, ConnectionWrite } from "./ConnectionSchemas.ts"
import { Deleted } from "./Deleted.ts"
import { connection, connectionBody, ids, latestInput, resourceList } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.pathOf("connection"), query: Parameters.onlyTeam, success: ConnectionRecord }
const patch = { ...one, payload: ConnectionPatch }

const update = {
  summary: "Update a connection in part",
  description: "What is given is merged into the connection; `rules` are replaced whole.",
  body: { rules: [{ type: "retry", strategy: "linear", count: 3, interval: 10_000 }] },
  answer: { ...connection, rules: [{ type: "retry", strategy: "linear", count: 3, interval: 10_000 }] },
  errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS", "RULE_INVALID", "TRANSFORMATION_INVALID"]
} as const
const writes = ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS", "RULE_INVALID", "TRANSFORMATION_INVALID"] as const
const pause = {
  summary: "Hold what a connection delivers",
  description: "Its events wait in HOLD until it is unpaused. Repeating it changes nothing.",
  answer: { ...connection, paused_at: connection.updated_at },
  errors: ["NOT_FOUND", "CONNECTION_DISABLED"]
} as const
const unpause = {
  summary: "Deliver what was held",
  description: "Held events are queued again. Repeating it changes nothing.",
  answer: connection,
  errors: ["NOT_FOUND"]
} as const
const disable = {
  summary: "Stop routing over a connection",
  description: "What waits on it is cancelled, and later requests make no event. Repeating it changes nothing.",
  answer: { ...connection, disabled_at: connection.updated_at },
  errors: ["NOT_FOUND"]
} as const
const enable = {
  summary: "Route over a connection again",
  description: "Repeating it changes nothing.",
  answer: connection,
  errors: ["NOT_FOUND"]
} as const

/** Links from a source to a destination, with their rules. */
export class ConnectionsApi extends HttpApiGroup.make("connections")
  .add(
    HttpApiEndpoint.get("list", "/connections", {
      query: Parameters.connections,
      success: ResourceList(ConnectionRecord)
    }).annotateMerge(
      operation({
        id: "listConnections",
        summary: "List connections",
        description: "One page, without a cursor: at most 255.",
        answer: resourceList(connection)
      })
    ),
    HttpApiEndpoint.post("create", "/connections", {
      query: Parameters.onlyTeam,
      payload: ConnectionWrite,
      success: ConnectionRecord
    }).annotateMerge(
      operation({
        id: "createConnection",
        summary: "Create a connection",
        description: "From then on, every request that its source accepts is routed by its rules.",
        body: connectionBody,
        answer: connection,
        errors: writes
      })
    ),
    HttpApiEndpoint.put("upsert", "/connections", {
      query: Parameters.onlyTeam,
      payload: ConnectionUpsert,
      success: ConnectionRecord
    }).annotateMerge(
      operation({
        id: "upsertConnection",
        summary: "Create or update a connection, by its id or by its source and name",
        description: "The connection that is selected is updated in part; when there is none, it is created.",
        body: connectionBody,
        answer: connection,
        errors: writes
      })
    ),
    HttpApiEndpoint.get("retrieve", "/connections/:id", one).annotateMerge(
      operation({
        id: "getConnection",
        summary: "Retrieve a connection",
        description: "With its source and its destination in full.",
        answer: connection,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/connections/:id", patch).annotateMerge(
      operation({ id: "updateConnection", ...update })
    ),
    HttpApiEndpoint.put("updateByPut", "/connections/:id", patch).annotateMerge(
      operation({ id: "updateConnectionByPut", ...update })
    ),
    HttpApiEndpoint.get("latestInput", "/connections/:id/latest-input", {
      ...one,
      success: Schema.Struct({ connection_id: Schema.String, latest_input: Schema.NullOr(LatestInput) })
    }).annotateMerge(
      operation({
        id: "getLatestInput",
        summary: "The latest request its source accepted",
        description: "To try a filter or a transformation on; null when there is none.",
        answer: latestInput,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.put("pause", "/connections/:id/pause", one).annotateMerge(
      operation({ id: "pauseConnection", ...pause })
    ),
    HttpApiEndpoint.post("pauseByPost", "/connections/:id/pause", one).annotateMerge(
      operation({ id: "pauseConnectionByPost", ...pause })
    ),
    HttpApiEndpoint.put("unpause", "/connections/:id/unpause", one).annotateMerge(
      operation({ id: "unpauseConnection", ...unpause })
    ),
    HttpApiEndpoint.post("unpauseByPost", "/connections/:id/unpause", one).annotateMerge(
      operation({ id: "unpauseConnectionByPost", ...unpause })
    ),
    HttpApiEndpoint.put("disable", "/connections/:id/disable", one).annotateMerge(
      operation({ id: "disableConnection", ...disable })
    ),
    HttpApiEndpoint.post("disableByPost", "/connections/:id/disable", one).annotateMerge(
      operation({ id: "disableConnectionByPost", ...disable })
    ),
    HttpApiEndpoint.put("enable", "/connections/:id/enable", one).annotateMerge(
      operation({ id: "enableConnection", ...enable })
    ),
    HttpApiEndpoint.post("enableByPost", "/connections/:id/enable", one).annotateMerge(
      operation({ id: "enableConnectionByPost", ...enable })
    ),
    HttpApiEndpoint.delete("delete", "/connections/:id", { ...one, success: Deleted }).annotateMerge(
      operation({
        id: "deleteConnection",
        summary: "Delete a connection",
        description: "What waits on it is cancelled.",
        answer: { id: ids.connection, deleted: true },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Connections",
      description: "What goes from where to where, and by which rules."
    })
  ) {}
