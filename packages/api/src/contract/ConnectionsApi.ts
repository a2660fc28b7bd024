import { Schema } from "effect"
import { HttpApiEndpoint } from "effect/http-api"
import { LatestInput } from "@tidegate/model/LatestInput"
import { connection, ConnectionUpsert } from "@tidegate/resources/Connection"
import { latestInput } from "./Examples.ts"
import { groupOf } from "./Group.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

/** Links from a source to a destination, with their rules. */
export class ConnectionsApi extends groupOf(
  connection,
  {
    title: "Connections",
    description: "What goes from where to where, and by which rules.",
    query: Parameters.connections,
    create: { description: "From then on, every request that its source accepts is routed by its rules." },
    upsert: {
      summary: "Create or update a connection, by its id or by its source and name",
      description: "The connection that is selected is updated in part; when there is none, it is created.",
      payload: ConnectionUpsert
    },
    retrieve: { description: "With its source and its destination in full." },
    update: { description: "What is given is merged into the connection; `rules` are replaced whole." },
    switch: {
      pause: {
        summary: "Hold what a connection delivers",
        description: "Its events wait in HOLD until it is unpaused. Repeating it changes nothing."
      },
      unpause: {
        summary: "Deliver what was held",
        description: "Held events are queued again. Repeating it changes nothing."
      },
      disable: {
        summary: "Stop routing over a connection",
        description: "What waits on it is cancelled, and later requests make no event. Repeating it changes nothing."
      },
      enable: { summary: "Route over a connection again", description: "Repeating it changes nothing." }
    },
    delete: { description: "What waits on it is cancelled." }
  },
  [
    HttpApiEndpoint.get("latestInput", "/connections/:id/latest-input", {
      params: Parameters.pathOf("connection"),
      query: Parameters.onlyTeam,
      success: Schema.Struct({ connection_id: Schema.String, latest_input: Schema.NullOr(LatestInput) })
    }).annotateMerge(
      operation({
        id: "getLatestInput",
        summary: "The latest request its source accepted",
        description: "To try a filter or a transformation on; null when there is none.",
        answer: latestInput,
        errors: ["NOT_FOUND"]
      })
    )
  ]
) {}
