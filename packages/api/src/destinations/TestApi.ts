import { HttpApiEndpoint } from "effect/http-api"
import { DestinationTest } from "@tidegate/model/DestinationTest"
import { editing } from "@tidegate/model/Permission"
import { destinationTestBody, destinationTestExample } from "@tidegate/resources/DestinationTest"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** A test delivery before anything is stored. */
export const testEndpoint = HttpApiEndpoint.post("test", "/destinations/test", {
  query: Parameters.onlyTeam,
  payload: destinationTestBody.described,
  success: DestinationTest
}).annotateMerge(
  operation({
    id: "testDestination",
    permission: editing,
    summary: "Make a test delivery to a new or changed destination",
    description:
      "The target really gets the request, or a short one if there is none, with the settings in the body. Nothing is stored. The answer is 200 also when the delivery fails: `successful` says so. With `destination_id`, masked and absent secrets are those of the stored destination; like a change, they go only to the target that they were written for. A team may make 30 test deliveries a minute, four at the same time. Destinations whose events are fetched by clients cannot be tested.",
    body: destinationTestExample,
    answer: {
      successful: false,
      error_code: "BAD_RESPONSE",
      error_message: "the target answered with status 401",
      response_status: 401,
      response_headers: { "content-type": "application/json" },
      body: '{"error":"unknown token"}',
      body_encoding: "text",
      body_truncated: false,
      requested_url: "https://api.example.com/hooks",
      http_method: "POST",
      duration_ms: 120
    },
    errors: ["NOT_FOUND", "ROLE_REQUIRED"]
  })
)
