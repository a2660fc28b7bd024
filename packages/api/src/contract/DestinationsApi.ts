import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { Destination } from "@tidegate/model/Destination"
import { ResourceList } from "@tidegate/model/Envelope"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import * as Parameters from "./Parameters.ts"
import { DestinationPatch, DestinationWrite } from "./WriteBodies.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam, success: Destination }
const write = { query: Parameters.onlyTeam, payload: DestinationWrite, success: Destination }
const about = (summary: string) => OpenApi.annotations({ summary })

/** Outbound targets with their pacing and credentials. */
export class DestinationsApi extends HttpApiGroup.make("destinations")
  .add(
    HttpApiEndpoint.get("list", "/destinations", {
      query: Parameters.resources,
      success: ResourceList(Destination)
    }).annotateMerge(about("List destinations, each with its attempts of the last 24 hours")),
    HttpApiEndpoint.post("create", "/destinations", write).annotateMerge(about("Create a destination")),
    HttpApiEndpoint.put("upsert", "/destinations", write).annotateMerge(
      about("Create or replace a destination by its name")
    ),
    HttpApiEndpoint.get("retrieve", "/destinations/:id", one).annotateMerge(about("Retrieve a destination")),
    HttpApiEndpoint.patch("update", "/destinations/:id", { ...one, payload: DestinationPatch }).annotateMerge(
      about("Update a destination in part: what is given is merged into it")
    ),
    HttpApiEndpoint.put("replace", "/destinations/:id", { ...one, payload: DestinationWrite }).annotateMerge(
      about("Replace a destination: its config becomes what is given")
    ),
    HttpApiEndpoint.put("disable", "/destinations/:id/disable", one).annotateMerge(about("Disable a destination")),
    HttpApiEndpoint.post("disableByPost", "/destinations/:id/disable", one).annotateMerge(
      about("Disable a destination")
    ),
    HttpApiEndpoint.put("enable", "/destinations/:id/enable", one).annotateMerge(about("Enable a destination")),
    HttpApiEndpoint.post("enableByPost", "/destinations/:id/enable", one).annotateMerge(about("Enable a destination")),
    HttpApiEndpoint.delete("delete", "/destinations/:id", { ...one, success: Deleted }).annotateMerge(
      about("Delete a destination and its connections")
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Destinations", description: "Where events are delivered to." })) {}
