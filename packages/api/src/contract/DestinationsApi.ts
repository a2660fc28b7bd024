import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { HttpApiEndpoint } from "effect/http-api"
import { ConsentStarted } from "@tidegate/entities/Destination/DestinationProtocol"
import { editing } from "@tidegate/model/Permission"
import { destination } from "@tidegate/resources/Destination"
import { ApiErrors } from "./ApiError.ts"
import { consentEnded, consentStarted } from "./Examples.ts"
import { groupOf } from "./Group.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const Started = ConsentStarted.annotate({
  identifier: "ConsentStarted",
  description: "Somebody opens authorization_url in a browser before expires_at, and is led back to redirect_uri."
})

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

/** Where events go, and somebody's consent to their tokens. */
export class DestinationsApi extends groupOf(destination, { query: Parameters.resources }, [
  HttpApiEndpoint.post("startConsent", "/destinations/:id/oauth/start", {
    params: Parameters.pathOf("destination"),
    query: Parameters.onlyTeam,
    success: Started
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
  HttpApiEndpoint.get("endConsent", "/oauth/callback", {
    query: {
      state: back("What the consent was begun with", 200),
      code: back("What it has brought", 4_096),
      error: back("Why it has brought none", 200),
      confirmed: back("What the page for browsers sends back when somebody has said yes there", 64)
    },
    success: Ended,
    error: ApiErrors
  }).annotateMerge(
    operation({
      id: "endDestinationConsent",
      permission: "public",
      summary: "End a consent",
      description:
        "Where a provider leads somebody back to who has consented. Without a credential: the state is one. A browser (`accept: text/html`) is shown whom the consent is for first, and nothing is done before somebody says yes there. The tokens are kept with the destination and are shown to nobody.",
      answer: consentEnded,
      errors: [
        "VALIDATION_ERROR",
        "OAUTH2_STATE_INVALID",
        "OAUTH2_HANDSHAKE_FAILED",
        "RATE_LIMITED",
        "INTERNAL_ERROR",
        "QUEUE_UNAVAILABLE"
      ]
    })
  )
) {}
