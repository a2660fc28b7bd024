import { oktaHandshake } from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import { apiKey, headerKey } from "./settings.ts"

const tokenIn = (types: Provider["types"], header: string): Provider => ({
  types,
  authType: "API_KEY",
  settings: [apiKey],
  verification: { kind: "token", header }
})

/** Providers that present what they were given, and sign nothing. */
export const credentialProviders: ReadonlyArray<Provider> = [
  tokenIn(["GITLAB"], "x-gitlab-token"),
  tokenIn(["TELEGRAM"], "x-telegram-bot-api-secret-token"),
  // The identifier of the API key that made the request, not the key.
  tokenIn(["DEEPGRAM"], "dg-token"),
  {
    types: ["OKTA"],
    authType: "API_KEY",
    settings: [apiKey, headerKey("authorization")],
    verification: { kind: "token", header: null },
    handshake: oktaHandshake
  },
  {
    types: ["POSTMARK", "CHARGEBEE"],
    authType: "BASIC_AUTH",
    settings: [
      {
        name: "username",
        required: true,
        secret: false,
        problem: (value) => (value.includes(":") ? "must not contain a colon (it ends the user name)" : null)
      },
      { name: "password", required: true, secret: true }
    ],
    verification: { kind: "basic" }
  }
]
