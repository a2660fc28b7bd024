import {
  asanaHandshake,
  dropboxHandshake,
  intercomHandshake,
  metaHandshake,
  notionHandshake,
  trelloHandshake,
  wooCommerceHandshake
} from "../Handshakes.ts"
import type { Provider } from "../Provider.ts"
import type { SignatureScheme } from "../SignatureScheme.ts"
import { answer, signedBy, webhookSecret } from "./settings.ts"

/** The most common signature: one lower-case hex HMAC-SHA256 of the body. `rest` lists the differences. */
const hex = (header: string, rest: Partial<SignatureScheme> = {}): readonly [SignatureScheme] => [
  {
    header,
    separator: null,
    prefix: "",
    algorithm: "sha256",
    encoding: "hex",
    content: "{body}",
    timestamp: null,
    secret: "utf8",
    ...rest
  }
]

const base64 = (header: string, rest: Partial<SignatureScheme> = {}): readonly [SignatureScheme] =>
  hex(header, { encoding: "base64", ...rest })

const optional = { ...webhookSecret("utf8"), required: false }

/**
 * Providers that sign the request without a timestamp: a recorded request can be replayed, and only the event's own id reveals it. Only the
 * provider can change that.
 */
export const signedProviders: ReadonlyArray<Provider> = [
  // The older x-hub-signature (SHA-1), which GitHub still sends beside it, is never read.
  signedBy(["GITHUB"], hex("x-hub-signature-256", { prefix: "sha256=" }), { answer: answer("2xx", 10) }),
  signedBy(["BITBUCKET"], hex("x-hub-signature", { prefix: "sha256=" }), { answer: answer("2xx", 10) }),
  signedBy(["META", "WHATSAPP"], hex("x-hub-signature-256", { prefix: "sha256=" }), {
    answer: answer("200", null),
    settings: [
      { ...webhookSecret("utf8"), aliases: ["secret", "app_secret"] },
      { name: "verify_token", required: false, secret: true }
    ],
    handshake: metaHandshake,
    presents: { query: ["hub.verify_token"] }
  }),
  signedBy(["INTERCOM"], hex("x-hub-signature", { prefix: "sha1=", algorithm: "sha1" }), {
    answer: answer("2xx", 5),
    handshake: intercomHandshake
  }),
  signedBy(["CURSOR"], hex("x-webhook-signature", { prefix: "sha256=" })),
  // The key is the verification token of the subscription, which the first request brings.
  signedBy(["NOTION"], hex("x-notion-signature", { prefix: "sha256=" }), {
    settings: [{ ...optional, aliases: ["secret", "verification_token"] }],
    handshake: notionHandshake
  }),
  signedBy(["CIRCLECI"], hex("circleci-signature", { separator: ",", prefix: "v1=" }), { answer: answer("2xx", 5) }),
  signedBy(["PAGERDUTY"], hex("x-pagerduty-signature", { separator: ",", prefix: "v1=" }), {
    answer: answer("2xx", 5)
  }),
  signedBy(["DROPBOX"], hex("x-dropbox-signature"), { answer: answer("2xx", 10), handshake: dropboxHandshake }),
  signedBy(["RAZORPAY"], hex("x-razorpay-signature"), { answer: answer("2xx", 5) }),
  signedBy(["COINBASE_COMMERCE"], hex("x-cc-webhook-signature"), { answer: answer("200", null) }),
  signedBy(["LEMON_SQUEEZY"], hex("x-signature"), { answer: answer("200", null) }),
  // Without a secret no request is accepted; the first request brings the secret.
  signedBy(["ASANA"], hex("x-hook-signature"), {
    answer: answer("200 or 204", 10),
    settings: [optional],
    handshake: asanaHandshake,
    presents: { headers: ["x-hook-secret"] }
  }),
  signedBy(["SENTRY"], hex("sentry-hook-signature"), { answer: answer("2xx", 1) }),
  signedBy(["GOCARDLESS"], hex("webhook-signature"), { answer: answer("2xx", 10) }),
  signedBy(["LAUNCHDARKLY"], hex("x-ld-signature")),
  signedBy(["CHECKOUT_COM"], hex("cko-signature")),
  signedBy(["PAYSTACK"], hex("x-paystack-signature", { algorithm: "sha512" }), { answer: answer("200", null) }),
  signedBy(["VERCEL"], hex("x-vercel-signature", { algorithm: "sha1" }), { answer: answer("2xx", 30) }),
  signedBy(["WEBEX"], hex("x-spark-signature", { algorithm: "sha1" })),

  signedBy(["SHOPIFY"], base64("x-shopify-hmac-sha256"), { answer: answer("200", 5) }),
  signedBy(["LINE"], base64("x-line-signature"), { answer: answer("200", 2) }),
  // One header for each key of the account: any of them may match.
  signedBy(["DOCUSIGN"], base64("x-docusign-signature-{n}"), { answer: answer("200", 100) }),
  signedBy(["TYPEFORM"], base64("typeform-signature", { prefix: "sha256=" }), { answer: answer("2xx", 30) }),
  signedBy(["XERO"], base64("x-xero-signature"), { answer: answer("200", 5, "always empty") }),
  signedBy(["WOO_COMMERCE"], base64("x-wc-webhook-signature"), {
    answer: answer("2xx", 60),
    handshake: wooCommerceHandshake
  }),
  signedBy(["HEROKU"], base64("heroku-webhook-hmac-sha256")),
  // The retired x-square-signature (SHA-1) is never read.
  signedBy(["SQUARE"], base64("x-square-hmacsha256-signature", { content: "{url}{body}" }), {
    answer: answer("2xx", 10)
  }),
  signedBy(["TRELLO"], base64("x-trello-webhook", { algorithm: "sha1", content: "{body}{url}" }), {
    answer: answer("200", null),
    handshake: trelloHandshake
  }),
  // An outgoing webhook. Its security token is the base64 of the key, not the key.
  signedBy(["MICROSOFT_TEAMS"], base64("authorization", { prefix: "HMAC ", secret: "base64" }), {
    answer: answer("200", 5, "message")
  })
]
