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

const Ended = Schema.Struct({
  authorized: Schema.Literal(true),
  destination_id: Schema.String,
  renewable: Schema.Boolean.annotate({
    description:
      "Whether the provider has given a refresh token: without one somebody has to consent again when the first token is over"
  })
}).annotate({ identifier: "ConsentEnded" })

const back = (description: string, longest: number) =>
  Schema.optionalKey(Schema.String.check(Characters.upTo(longest)).annotate({ description }))

const consentQuery = {
  state: back("What the consent was begun with", 200),
  code: back("What it has brought", 4_096),
  error: back("Why it has brought none", 200),
  confirmed: back("What the page sends back when somebody has said yes there", 64)
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
      summary: "Send somebody to consent to a destination's tokens",
      description:
        "For `OAUTH2_AUTHORIZATION_CODE` with an `authorization_url`. What is begun is good for ten minutes and for once; beginning again takes its place.",
      answer: consentStarted,
      errors: ["NOT_FOUND"]
    })
  )
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
      summary: "Show whom a consent is for",
      description:
        "Where a provider leads somebody back to who has consented. Without a credential: the state is one. The answer is a page that shows whom the consent is for, whoever asks; nothing is done with it before somebody says yes there. With `error` in the place of `code` the consent has ended.",
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
        "What the page of `GET /oauth/callback` sends when somebody says yes there. `confirmed` is signed, for this state and this code, and is good for ten minutes and for once; without it the page is shown again. The tokens are kept with the destination and are shown to nobody. A browser (`accept: text/html`) is answered with a page.",
      answer: consentEnded,
      errors: consentErrors
    })
  )
) {}
