import { HttpApiEndpoint } from "effect/http-api"
import { reading } from "@tidegate/model/Permission"
import { SourceHealth } from "@tidegate/model/SourceHealth"
import { source } from "@tidegate/resources/Source"
import { sourceHealth } from "../contract/Examples.ts"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Where requests come in. */
export class SourcesApi extends groupOf(source, { list: Lists.sources }, [
  HttpApiEndpoint.get("health", "/sources/:id/health", {
    params: Parameters.pathOf("source"),
    query: Parameters.onlyTeam,
    success: SourceHealth
  }).annotateMerge(
    operation({
      id: "getSourceHealth",
      permission: reading,
      summary: "Retrieve the health of a source",
      description:
        "Returns the counts of the source's requests in the last 24 hours, and the state of its rate limit. Requests over the limit are counted, but not stored.",
      answer: sourceHealth,
      errors: ["NOT_FOUND"]
    })
  )
]) {}
