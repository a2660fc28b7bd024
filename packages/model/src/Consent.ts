import { Schema } from "effect"

/** A started OAuth consent: the URL where a person consents to a destination's tokens. */
export const ConsentStarted = Schema.Struct({
  authorization_url: Schema.String,
  redirect_uri: Schema.String,
  expires_at: Schema.String
}).annotate({
  identifier: "ConsentStarted",
  description:
    "Open authorization_url in a browser before expires_at. After the consent, the provider redirects the browser to redirect_uri."
})
