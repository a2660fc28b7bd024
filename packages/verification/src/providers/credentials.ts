import { oktaHandshake } from "../Handshakes.ts"
import type { Answer, Provider } from "../Provider.ts"
import { answer, anyAnswer, apiKey, headerKey } from "./settings.ts"

const tokenIn = (types: Provider["types"], header: string, answer = anyAnswer): Provider => ({
  types,
  authType: "API_KEY",
  settings: [apiKey],
  verification: { kind: "token", header },
  answer
})

/** HTTP Basic. The operator enters the credentials in the URL or in the settings at the provider. */
const basicOf = (types: Provider["types"], answer: Answer): Provider => ({
  types,
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
  verification: { kind: "basic" },
  answer
})

/** Providers that present a configured credential and sign nothing. */
export const credentialProviders: ReadonlyArray<Provider> = [
  tokenIn(["GITLAB"], "x-gitlab-token", answer("2xx", 10)),
  tokenIn(["TELEGRAM"], "x-telegram-bot-api-secret-token"),
  // The identifier of the API key that made the request, not the key.
  tokenIn(["DEEPGRAM"], "dg-token"),
  {
    types: ["OKTA"],
    authType: "API_KEY",
    settings: [apiKey, headerKey("authorization")],
    verification: { kind: "token", header: null },
    answer: answer("200 or 204", 3),
    handshake: oktaHandshake
  },
  basicOf(["POSTMARK"], answer("200", null)),
  basicOf(["CHARGEBEE"], anyAnswer)
]
