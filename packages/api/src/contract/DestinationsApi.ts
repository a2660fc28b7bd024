import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ResourceList } from "@tidegate/model/Lists"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import { DestinationPatch, DestinationRecord, DestinationWrite } from "@tidegate/resources/destination/Document"
import { destination, destinationBody, ids, resourceList } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const one = { params: Parameters.pathOf("destination"), query: Parameters.onlyTeam, success: DestinationRecord }
const write = { query: Parameters.onlyTeam, payload: DestinationWrite, success: DestinationRecord }

const disable = {
  summary: "Disable a destination",
  description: "What waits for it is cancelled, and its connections route nothing to it. Repeating it changes nothing.",
  answer: { ...destination, disabled_at: destination.updated_at },
  errors: ["NOT_FOUND"]
} as const
const enable = {
  summary: "Enable a destination",
  description: "Its connections route to it again. Repeating it changes nothing.",
  answer: destination,
  errors: ["NOT_FOUND"]
} as const

/** Outbound targets with their pacing and credentials. */
export class DestinationsApi extends HttpApiGroup.make("destinations")
  .add(
    HttpApiEndpoint.get("list", "/destinations", {
      query: Parameters.resources,
      success: ResourceList(DestinationRecord)
    }).annotateMerge(
      operation({
        id: "listDestinations",
        summary: "List destinations",
        description: "One page, without a cursor: at most 255, each with its attempts of the last 24 hours.",
        answer: resourceList(destination)
      })
    ),
    HttpApiEndpoint.post("create", "/destinations", write).annotateMerge(
      operation({
        id: "createDestination",
        summary: "Create a destination",
        description: "Where the URL leads is checked with every delivery; private networks are refused unless allowed.",
        body: destinationBody,
        answer: destination,
        errors: ["RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.put("upsert", "/destinations", write).annotateMerge(
      operation({
        id: "upsertDestination",
        summary: "Create a destination, or update the one of its name",
        description: "What is left out stays as it is; secrets may be given masked.",
        body: destinationBody,
        answer: destination,
        errors: ["RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/destinations/:id", one).annotateMerge(
      operation({
        id: "getDestination",
        summary: "Retrieve a destination",
        description: "Secrets are masked.",
        answer: destination,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/destinations/:id", { ...one, payload: DestinationPatch }).annotateMerge(
      operation({
        id: "updateDestination",
        summary: "Update a destination in part",
        description: "What is given is merged into the destination; `auth` is replaced whole.",
        body: { config: { rate_limit: 5 } },
        answer: { ...destination, config: { ...destination.config, rate_limit: 5 } },
        errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.put("replace", "/destinations/:id", { ...one, payload: DestinationWrite }).annotateMerge(
      operation({
        id: "replaceDestination",
        summary: "Replace a destination",
        description: "What is left out has its default; secrets may be given masked.",
        body: destinationBody,
        answer: destination,
        errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.put("disable", "/destinations/:id/disable", one).annotateMerge(
      operation({ id: "disableDestination", ...disable })
    ),
    HttpApiEndpoint.post("disableByPost", "/destinations/:id/disable", one).annotateMerge(
      operation({ id: "disableDestinationByPost", ...disable })
    ),
    HttpApiEndpoint.put("enable", "/destinations/:id/enable", one).annotateMerge(
      operation({ id: "enableDestination", ...enable })
    ),
    HttpApiEndpoint.post("enableByPost", "/destinations/:id/enable", one).annotateMerge(
      operation({ id: "enableDestinationByPost", ...enable })
    ),
    HttpApiEndpoint.delete("delete", "/destinations/:id", { ...one, success: Deleted }).annotateMerge(
      operation({
        id: "deleteDestination",
        summary: "Delete a destination and its connections",
        description: "What waits for it is cancelled.",
        answer: { id: ids.destination, deleted: true },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Destinations",
      description: "Where events are delivered to, how fast, and with which credentials."
    })
  ) {}
