import { isHeaderName } from "@tidegate/model/AuthSettings"
import type { Age, Answer, AnswerBody, Provider, ProviderSetting } from "../Provider.ts"
import type { SignatureScheme } from "../SignatureScheme.ts"
import { signingKey } from "@tidegate/model/SigningKey"
import type { SecretForm } from "@tidegate/model/SigningKey"

const keyProblem =
  (form: SecretForm) =>
  (value: string): string | null =>
    signingKey(value, form) === null ? "must be base64, with or without whsec_ before it" : null

/** The answer that a provider expects: these statuses within this many seconds; null if it documents no time. */
export const answer = (status: Answer["status"], seconds: number | null, body: AnswerBody = "any"): Answer => ({
  status,
  seconds,
  body
})

/** Any 2xx; no documented time. */
export const anyAnswer = answer("2xx", null)

/** The age for providers that document no other. */
export const usualAge: Age = { past: 300, ahead: 300 }

/** The secret of an HMAC. */
export const webhookSecret = (form: SecretForm): ProviderSetting => ({
  name: "webhook_secret_key",
  required: true,
  secret: true,
  aliases: ["secret", "signing_secret", "webhook_secret"],
  problem: keyProblem(form)
})

/** The secret that a sender presents unchanged in a header. */
export const apiKey: ProviderSetting = {
  name: "api_key",
  required: true,
  secret: true,
  aliases: ["secret", "token", "webhook_secret_key"],
  problem: (value) => (value === value.trim() ? null : "must not begin or end with white space")
}

export const headerKey = (name: string): ProviderSetting => ({
  name: "header_key",
  required: false,
  secret: false,
  aliases: ["header_name"],
  default: name,
  problem: (value) => (isHeaderName(value) ? null : "must be a valid HTTP header name")
})

/** A provider that signs. `rest` adds to the defaults or replaces them; by default any answer is accepted. */
export const signedBy = (
  types: Provider["types"],
  schemes: readonly [SignatureScheme, ...ReadonlyArray<SignatureScheme>],
  rest: Partial<Provider> = {}
): Provider => ({
  types,
  authType: "HMAC",
  settings: [webhookSecret(schemes[0].secret)],
  verification: { kind: "scheme", schemes },
  answer: anyAnswer,
  ...rest
})
