import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { reading } from "@tidegate/model/Permission"
import { SourceType } from "@tidegate/model/SourceType"
import { sourceTypes } from "@tidegate/resources/source/SourceTypeCatalog"
import { Authorization } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"

const example = sourceTypes.find(({ type }) => type === "STRIPE")

/** The types of sources. */
export class SourceTypesApi extends HttpApiGroup.make("source-types")
  .add(
    HttpApiEndpoint.get("list", "/source-types", {
      query: Lists.wholeList.query,
      success: Lists.wholeList.answer(SourceType)
    }).annotateMerge(
      operation({
        id: "listSourceTypes",
        permission: reading,
        summary: "List the types of sources",
        description:
          "Returns each type with the name by which people know it, what to do at its provider, and the samples of a test request. If `If-None-Match` has the current `ETag`, the answer is 304.",
        answer: Lists.wholeList.example(example!)
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Source types", description: "The types of sources, as people know them." })
  ) {}
