import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { ResourceList } from "@tidegate/model/Envelope"
import { Source } from "@tidegate/model/Source"
import { Authorization } from "./Authorization.ts"
import { Deleted } from "./Deleted.ts"
import * as Parameters from "./Parameters.ts"
import { SourcePatch, SourceWrite } from "./WriteBodies.ts"

const one = { params: Parameters.path, query: Parameters.onlyTeam, success: Source }
const patch = { ...one, payload: SourcePatch }
const write = { query: Parameters.onlyTeam, payload: SourceWrite, success: Source }
const about = (summary: string) => OpenApi.annotations({ summary })

/** Ingress endpoints: a public URL each, verification, and what to answer. */
export class SourcesApi extends HttpApiGroup.make("sources")
  .add(
    HttpApiEndpoint.get("list", "/sources", {
      query: Parameters.resources,
      success: ResourceList(Source)
    }).annotateMerge(about("List sources")),
    HttpApiEndpoint.post("create", "/sources", write).annotateMerge(about("Create a source")),
    HttpApiEndpoint.put("upsert", "/sources", write).annotateMerge(about("Create or update a source by its name")),
    HttpApiEndpoint.get("retrieve", "/sources/:id", one).annotateMerge(about("Retrieve a source")),
    HttpApiEndpoint.patch("update", "/sources/:id", patch).annotateMerge(about("Update a source in part")),
    HttpApiEndpoint.put("updateByPut", "/sources/:id", patch).annotateMerge(about("Update a source in part")),
    HttpApiEndpoint.put("disable", "/sources/:id/disable", one).annotateMerge(
      about("Disable a source and its connections")
    ),
    HttpApiEndpoint.post("disableByPost", "/sources/:id/disable", one).annotateMerge(
      about("Disable a source and its connections")
    ),
    HttpApiEndpoint.put("enable", "/sources/:id/enable", one).annotateMerge(about("Enable a source")),
    HttpApiEndpoint.post("enableByPost", "/sources/:id/enable", one).annotateMerge(about("Enable a source")),
    HttpApiEndpoint.delete("delete", "/sources/:id", { ...one, success: Deleted }).annotateMerge(
      about("Delete a source and its connections")
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Sources", description: "Where requests come in." })) {}
