import { HttpApiEndpoint } from "effect/http-api"
import { answeringPayloads, editing, executing, reading } from "@tidegate/model/Permission"
import { SourceHealth } from "@tidegate/model/SourceHealth"
import {
  DeduplicationTest,
  deduplicationTestAnswer,
  deduplicationTestBody,
  deduplicationTestExample
} from "@tidegate/resources/DeduplicationTest"
import { source } from "@tidegate/resources/Source"
import { testRequestBody, testRequestExample } from "@tidegate/resources/TestRequest"
import { testRequestAnswer, TestRequestResult } from "@tidegate/resources/TestRequestAnswer"
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
  HttpApiEndpoint.post("testRequest", "/sources/:id/test-request", {
    params: Parameters.pathOf("source"),
    query: Parameters.onlyTeam,
    payload: testRequestBody.described,
    success: TestRequestResult
  }).annotateMerge(
    operation({
      id: "sendTestRequest",
      permission: editing,
      summary: "Send a test request to a source",
      description:
        "Sends a sample of the source's type, or a request of one's own, as its provider would send it: signed with the source's own secret, and by the same way as every sender's. It is stored, verified and routed as any other, and has the header `x-gateway-test-request`. A source takes 60 in a minute.",
      body: testRequestExample,
      answer: testRequestAnswer,
      errors: [
        "NOT_FOUND",
        "SOURCE_DISABLED",
        "SOURCE_WITHOUT_SENDERS",
        "SIGNATURE_UNAVAILABLE",
        "PAYLOAD_TOO_LARGE",
        "RATE_LIMITED",
        "QUEUE_UNAVAILABLE",
        "LOOP_DETECTED"
      ]
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
