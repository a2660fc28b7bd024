import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { ConsentStarted } from "@tidegate/model/Consent"
import { editing } from "@tidegate/model/Permission"
import { destination } from "@tidegate/resources/Destination"
import { ApiErrors } from "../contract/ApiError.ts"
import { consentEnded, consentStarted } from "../contract/Examples.ts"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"
import { messageEndpoints } from "./MessagesApi.ts"
import { testEndpoint } from "./TestApi.ts"

const authorized = Schema.Literal(true)
const renewable = Schema.Boolean.annotate({
  description:
    "Whether the provider issued a refresh token. Without one, a new consent is necessary when the first token expires"
})

const Ended = Schema.Union([
  Schema.Struct({ authorized, destination_id: Schema.String, renewable }),
  Schema.Struct({ authorized, provider_account_id: Schema.String, renewable })
]).annotate({ identifier: "ConsentEnded" })

const back = (description: string, longest: number) =>
  Schema.optionalKey(Schema.String.check(Characters.upTo(longest)).annotate({ description }))

const consentQuery = {
  state: back("The state with which the consent was started", 200),
  code: back("The code that the provider issued", 4_096),
  error: back("The reason why there is no code", 200),
  confirmed: back("The value that the page sends when the person agrees", 64)
}

/** The query with which a person is redirected back. */
export type ConsentQuery = Schema.Struct.Type<typeof consentQuery>

const consentErrors = [
  "VALIDATION_ERROR",
  "OAUTH2_STATE_INVALID",
  "OAUTH2_HANDSHAKE_FAILED",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "QUEUE_UNAVAILABLE"
] as const

/** Where events go, and somebody's consent to their tokens. */
export class DestinationsApi extends groupOf(destination, { list: Lists.destinations }, [
  HttpApiEndpoint.post("startConsent", "/destinations/:id/oauth/start", {
    params: Parameters.pathOf("destination"),
    query: Parameters.onlyTeam,
    success: ConsentStarted
  }).annotateMerge(
    operation({
      id: "startDestinationConsent",
      permission: editing,
      summary: "Start the consent for a destination's tokens",
      description:
        "For `OAUTH2_AUTHORIZATION_CODE` with an `authorization_url`. A started consent is valid for ten minutes and can be used once. A new start replaces it.",
      answer: consentStarted,
      errors: ["NOT_FOUND"]
    })
  ),
  testEndpoint,
  ...messageEndpoints
]).add(
  HttpApiEndpoint.get("showConsent", "/oauth/callback", {
    query: consentQuery,
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" })),
    error: ApiErrors
  }).annotateMerge(
    operation({
      id: "showDestinationConsent",
      permission: "public",
      // RFC 6749, 4.1.2: a client must accept further parameters of a provider.
      anyParameters: true,
      summary: "Show what asks for consent",
      description:
        "The provider redirects the browser to this URL after the consent. It needs no credential, because the state is one. The answer is a page that shows which destination or provider account asks for the consent. Nothing happens before somebody agrees on that page. If there is `error` instead of `code`, the consent has ended.",
      answer: "<!doctype html> … <h1>Do you consent?</h1> …",
      errors: consentErrors
    })
  ),
  HttpApiEndpoint.post("endConsent", "/oauth/callback", {
    query: consentQuery,
    success: Ended,
    error: ApiErrors
  }).annotateMerge(
    operation({
      id: "endDestinationConsent",
      permission: "public",
      anyParameters: true,
      summary: "End a consent",
      description:
        "The page of `GET /oauth/callback` sends this when somebody agrees. `confirmed` is a signature for this state and code. It is valid for ten minutes and can be used once. Without it the page is shown again. The tokens are stored with the destination or the provider account, and are never shown. For a browser (`accept: text/html`) the answer is a page.",
      answer: consentEnded,
      errors: consentErrors
    })
  )
) {}
