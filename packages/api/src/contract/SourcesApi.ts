import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ResourceList } from "@tidegate/model/Lists"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import { ids, resourceList, source, sourceBody } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"
import { SourcePatch, SourceRecord, SourceWrite } from "./SourceSchemas.ts"

const one = { params: Parameters.pathOf("source"), query: Parameters.onlyTeam, success: SourceRecord }
const patch = { ...one, payload: SourcePatch }
const write = { query: Parameters.onlyTeam, payload: SourceWrite, success: SourceRecord }

const update = {
  summary: "Update a source in part",
  description: "What is given is merged into the source; `auth`, `custom_response` and `proxy` are replaced whole.",
  body: { description: "Orders of the new shop" },
  answer: { ...source, description: "Orders of the new shop" },
  errors: ["NOT_FOUND", "RESOURCE_ALREADY_EXISTS"]
} as const
const disable = {
  summary: "Disable a source and its connections",
  description:
    "Requests to it are answered 403 and stored as rejected; what waits on its connections is cancelled. Repeating it changes nothing.",
  answer: { ...source, status: "disabled", disabled_at: source.updated_at },
  errors: ["NOT_FOUND"]
} as const
const enable = {
  summary: "Enable a source",
  description: "With it, the connections that were disabled by disabling it. Repeating it changes nothing.",
  answer: source,
  errors: ["NOT_FOUND"]
} as const

/** Ingress endpoints: a public URL each, verification, and what to answer. */
export class SourcesApi extends HttpApiGroup.make("sources")
  .add(
    HttpApiEndpoint.get("list", "/sources", {
      query: Parameters.resources,
      success: ResourceList(SourceRecord)
    }).annotateMerge(
      operation({
        id: "listSources",
        summary: "List sources",
        description: "One page, without a cursor: at most 255.",
        answer: resourceList(source)
      })
    ),
    HttpApiEndpoint.post("create", "/sources", write).annotateMerge(
      operation({
        id: "createSource",
        summary: "Create a source",
        description: "Its `url` is what senders post to. Without `auth` it accepts everybody.",
        body: sourceBody,
        answer: source,
        errors: ["RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.put("upsert", "/sources", write).annotateMerge(
      operation({
        id: "upsertSource",
        summary: "Create or update a source by its name",
        description: "The source of this name is updated in part; when there is none, it is created.",
        body: sourceBody,
        answer: source,
        errors: ["RESOURCE_ALREADY_EXISTS"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/sources/:id", one).annotateMerge(
      operation({
        id: "getSource",
        summary: "Retrieve a source",
        description: "Secrets are masked.",
        answer: source,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.patch("update", "/sources/:id", patch).annotateMerge(operation({ id: "updateSource", ...update })),
    HttpApiEndpoint.put("updateByPut", "/sources/:id", patch).annotateMerge(
      operation({ id: "updateSourceByPut", ...update })
    ),
    HttpApiEndpoint.put("disable", "/sources/:id/disable", one).annotateMerge(
      operation({ id: "disableSource", ...disable })
    ),
    HttpApiEndpoint.post("disableByPost", "/sources/:id/disable", one).annotateMerge(
      operation({ id: "disableSourceByPost", ...disable })
    ),
    HttpApiEndpoint.put("enable", "/sources/:id/enable", one).annotateMerge(
      operation({ id: "enableSource", ...enable })
    ),
    HttpApiEndpoint.post("enableByPost", "/sources/:id/enable", one).annotateMerge(
      operation({ id: "enableSourceByPost", ...enable })
    ),
    HttpApiEndpoint.delete("delete", "/sources/:id", { ...one, success: Deleted }).annotateMerge(
      operation({
        id: "deleteSource",
        summary: "Delete a source and its connections",
        description: "Its URL answers 404 from then on. Its requests and events are kept until retention takes them.",
        answer: { id: ids.source, deleted: true },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Sources",
      description: "Where requests come in: a public URL each, who may send, and what senders are answered."
    })
  ) {}
