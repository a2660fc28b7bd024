import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { notByProjectKeys, reading } from "@tidegate/model/Permission"
import { SourceProviders } from "@tidegate/model/SourceCatalog"
import { Authorization } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const output = { type: "object", properties: { title: { type: "string" } } }

const provider = {
  key: "json_feed",
  name: "JSON feed",
  description: "Reads the items of a JSON list.",
  icon_key: "rss",
  manifest_version: "1.0.0",
  config_version: 1,
  capabilities: ["sources"],
  auth: {
    type: "none",
    provider_key: "json_feed",
    connection_type: "none",
    credential_fields: [],
    modes: ["none"],
    base_url: null,
    self_hosted: false,
    scopes: []
  },
  definitions: [
    {
      key: "item.added",
      provider_key: "json_feed",
      name: "Item added",
      description: "A new item is in the list.",
      category: "core",
      delivery_mode: "polling",
      pair_key: "json_feed.item.added",
      version: "1.0.0",
      available: true,
      required_scopes: [],
      config_schema: { type: "object", properties: { url: { type: "string" } }, required: ["url"] },
      output_schema: output,
      export_path: "body",
      primary_output: "title",
      sample: { inputs: { url: "https://example.com/items.json" }, output: { title: "News" } }
    }
  ]
}

/** What sources of type PROVIDER can read. */
export class SourceProvidersApi extends HttpApiGroup.make("source-providers")
  .add(
    HttpApiEndpoint.get("providers", "/source-providers", {
      query: Parameters.onlyTeam,
      success: SourceProviders
    }).annotateMerge(
      operation({
        id: "getSourceProviders",
        permission: notByProjectKeys(reading),
        summary: "List the providers of sources",
        description:
          "Returns each provider's account, and the inputs and outputs of its definitions. If `If-None-Match` has the current `ETag`, the answer is 304.",
        answer: Lists.wholeList.example(provider)
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Source providers", description: "The catalog of the providers of sources." })
  ) {}
