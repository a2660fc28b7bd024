import { HttpApiEndpoint } from "effect/http-api"
import { answeringPayloads, executing, reading } from "@tidegate/model/Permission"
import { SourceHealth } from "@tidegate/model/SourceHealth"
import {
  DeduplicationTest,
  deduplicationTestAnswer,
  deduplicationTestBody,
  deduplicationTestExample
} from "@tidegate/resources/DeduplicationTest"
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
  ),
  HttpApiEndpoint.post("testDeduplication", "/sources/:id/deduplication-test", {
    params: Parameters.pathOf("source"),
    query: Parameters.onlyTeam,
    payload: deduplicationTestBody.described,
    success: DeduplicationTest
  }).annotateMerge(
    operation({
      id: "testDeduplication",
      // The conditions and fields of a rule tell what is in the bodies.
      permission: answeringPayloads(executing),
      summary: "Test a deduplicate rule on the latest requests of a source",
      description:
        "Nothing is stored. The answer has the accepted requests that the rule would ignore, and which earlier one each of them repeats, if all others became events. At most the latest 100 requests are compared, with 32 MiB of bodies.",
      body: deduplicationTestExample,
      answer: deduplicationTestAnswer,
      errors: ["NOT_FOUND", "RULE_INVALID"]
    })
  )
]) {}
