import { createHmac } from "node:crypto"
import type { Handshake, HandshakeOf, InboundRequest } from "./Provider.ts"
import { jsonBody, sameText, singleHeader, singleParameter } from "./providers/Presented.ts"
import type { JsonObject } from "./providers/Presented.ts"
import { confirmUrlOf } from "./providers/snsUrls.ts"
import { signingKey } from "@tidegate/model/SigningKey"

/**
 * Handshakes: the first requests by which providers check that the owner of a URL wants their requests. Providers that are not here have
 * none, or one that needs no special answer: GitHub's `ping`, LINE's empty `events` and Asana's heartbeats are ordinary signed
 * requests. Xero's intent to receive expects what every request gets: 200 if the signature is right, 401 if not, both without a body.
 *
 * The sender of a handshake chooses the text that is sent back, and it may be unsigned. So that an answer cannot become a web page, the
 * text is at most 1,024 printable ASCII characters without `<` and `>`, is read only from the place that the provider documents, and is
 * sent as text/plain or JSON with `nosniff`. A request that does not fit is an ordinary request, and verified as one.
 */
const reflected = /^[ -;=?-~]{1,1024}$/

const noSniff = { "x-content-type-options": "nosniff" }

/** Bytes. Handshakes are small: a larger body is an event, and is not parsed here. */
const maximumBody = 16_384

const objectOf = ({ body, method }: InboundRequest): JsonObject | null =>
  method === "POST" && body.length > 0 && body.length <= maximumBody ? jsonBody(body) : null

const isReflected = (value: unknown): value is string => typeof value === "string" && reflected.test(value)

const text = (kind: string, body: string, needsCheck: boolean): Handshake => ({
  kind,
  status: 200,
  contentType: "text/plain; charset=utf-8",
  body,
  headers: noSniff,
  needsCheck
})

const json = (kind: string, value: Readonly<Record<string, string | number>>, needsCheck: boolean): Handshake => ({
  kind,
  status: 200,
  contentType: "application/json; charset=utf-8",
  body: JSON.stringify(value),
  headers: noSniff,
  needsCheck
})

const empty = (kind: string, status: 200 | 204, needsCheck: boolean): Handshake => ({
  kind,
  status,
  contentType: null,
  body: "",
  needsCheck
})

/** https://api.slack.com/events/url_verification: signed like every event. */
export const slackHandshake: HandshakeOf = (request) => {
  const message = objectOf(request)
  const challenge = message?.["challenge"]
  return message?.["type"] === "url_verification" && isReflected(challenge)
    ? json("url_verification", { challenge }, true)
    : null
}

/**
 * Meta and WhatsApp (https://developers.facebook.com/docs/graph-api/webhooks/getting-started): GET with `hub.mode`,
 * `hub.verify_token` and `hub.challenge`. It is not signed. The setting `verify_token` authenticates the sender; without that setting the
 * handshake is refused.
 */
export const metaHandshake: HandshakeOf = ({ method, query }, { verify_token }) => {
  if (method !== "GET" || singleParameter(query, "hub.mode") !== "subscribe") return null
  const token = singleParameter(query, "hub.verify_token")
  const challenge = singleParameter(query, "hub.challenge")
  if (verify_token === undefined || token === null) return "refuse"
  return sameText(token, verify_token) && isReflected(challenge) ? text("subscribe", challenge, false) : "refuse"
}

/** https://docs.discord.com/developers/interactions/overview: a signed PING (1) expects a PONG (1). */
export const discordInteractionsHandshake: HandshakeOf = (request) =>
  objectOf(request)?.["type"] === 1 ? json("ping", { type: 1 }, true) : null

/** https://docs.discord.com/developers/events/webhook-events: a signed PING is 0 here, and expects 204 without a body. */
export const discordEventsHandshake: HandshakeOf = (request) =>
  objectOf(request)?.["type"] === 0 ? empty("ping", 204, true) : null

/** No colon: content that Zoom signs begins with `v0:`, and the answer must never be a signature of such content. */
const zoomToken = /^[\w+/=-]{1,256}$/

/**
 * https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint: the answer is an HMAC of the token with the secret.
 * Zoom signs this request too, and only a signed one is answered: otherwise anybody could have any text signed.
 */
export const zoomHandshake: HandshakeOf = (request, { webhook_secret_key = "" }) => {
  const message = objectOf(request)
  const payload = message?.["event"] === "endpoint.url_validation" ? message["payload"] : undefined
  const plainToken = typeof payload === "object" && payload !== null ? Reflect.get(payload, "plainToken") : undefined
  const key = signingKey(webhook_secret_key, "utf8")
  if (typeof plainToken !== "string" || !zoomToken.test(plainToken) || key === null) return null
  const encryptedToken = createHmac("sha256", key).update(plainToken, "utf8").digest("hex")
  return json("endpoint.url_validation", { plainToken, encryptedToken }, true)
}

/** https://www.dropbox.com/developers/reference/webhooks: GET with `challenge`. It is not signed. */
export const dropboxHandshake: HandshakeOf = ({ method, query }) => {
  const challenge = method === "GET" ? singleParameter(query, "challenge") : null
  return isReflected(challenge) ? text("challenge", challenge, false) : null
}

/** https://dev.twitch.tv/docs/eventsub/handling-webhook-events: signed; a `revocation` is an ordinary request. */
export const twitchHandshake: HandshakeOf = (request) => {
  const type = singleHeader(request.headers, "twitch-eventsub-message-type")
  if (type !== "webhook_callback_verification") return null
  const challenge = objectOf(request)?.["challenge"]
  return isReflected(challenge) ? text(type, challenge, true) : null
}

/** A shorter secret would be guessable, and no provider sends one. */
const announced = /^[!-~]{16,256}$/

/**
 * https://developers.asana.com/docs/webhooks-guide: the first POST announces its secret in X-Hook-Secret, expects it back, and
 * later requests are signed with it. Until then a source may have no secret, and accepts no request. The first announcement is
 * trusted: nothing can prove it, and only somebody who knows the URL can send it. After that another secret is refused: a source
 * serves one Asana webhook, and only the operator can replace its secret.
 */
export const asanaHandshake: HandshakeOf = ({ headers, method }, { webhook_secret_key }) => {
  const secret = singleHeader(headers, "x-hook-secret")
  if (method !== "POST" || secret === null || headers["x-hook-signature"] !== undefined) return null
  if (!announced.test(secret)) return "refuse"
  const answer = { ...empty("hook_secret", 200, false), headers: { "x-hook-secret": secret } }
  if (webhook_secret_key === undefined) return { ...answer, remember: secret }
  return sameText(secret, webhook_secret_key) ? answer : "refuse"
}

/**
 * https://developers.notion.com/reference/webhooks: the first POST contains the `verification_token` that signs later requests, and
 * no event; the operator copies it from the stored request into Notion. It is trusted once, as Asana's is.
 */
export const notionHandshake: HandshakeOf = (request, { webhook_secret_key }) => {
  const message = objectOf(request)
  const token = message?.["verification_token"]
  if (message === null || typeof token !== "string" || message["type"] !== undefined) return null
  if (!announced.test(token)) return "refuse"
  const answer = empty("verification_token", 200, false)
  if (webhook_secret_key === undefined) return { ...answer, remember: token }
  return sameText(token, webhook_secret_key) ? answer : "refuse"
}

/** HEAD, which carries no signature and expects 200. */
const headHandshake: HandshakeOf = ({ method }) => (method === "HEAD" ? empty("head", 200, false) : null)

/** https://developer.atlassian.com/cloud/trello/guides/rest-api/webhooks: HEAD when a webhook is made. */
export const trelloHandshake = headHandshake

/** https://mandrill.zendesk.com/hc/en-us/articles/360038740014: HEAD when a webhook is made. */
export const mandrillHandshake = headHandshake

/** https://developers.intercom.com/building-apps/docs/setting-up-webhooks: HEAD when the URL is entered. */
export const intercomHandshake = headHandshake

/**
 * https://learn.microsoft.com/graph/change-notifications-delivery-webhooks: POST with `validationToken` in the query and no
 * body. It is not signed. A request that contains notifications is an ordinary one, whatever its query is.
 */
export const microsoftGraphHandshake: HandshakeOf = ({ body, method, query }) => {
  const token = method === "POST" && body.length === 0 ? singleParameter(query, "validationToken") : null
  return isReflected(token) ? text("validationToken", token, false) : null
}

/** https://developer.okta.com/docs/concepts/event-hooks/: GET with the challenge and the configured secret in headers. */
export const oktaHandshake: HandshakeOf = ({ headers, method }) => {
  const verification = method === "GET" ? singleHeader(headers, "x-okta-verification-challenge") : null
  return isReflected(verification) ? json("verification", { verification }, true) : null
}

/**
 * https://docs.aws.amazon.com/sns/latest/dg/http-subscription-confirmation-json.html: signed; confirmed by fetching its
 * SubscribeURL, which must be on a host of SNS and confirm this same subscription. An UnsubscribeConfirmation is an
 * ordinary request, so that the operator sees it.
 */
export const snsHandshake: HandshakeOf = (request) => {
  const message = objectOf(request)
  if (message?.["Type"] !== "SubscriptionConfirmation") return null
  const confirmUrl = confirmUrlOf(message)
  return confirmUrl === null ? "refuse" : { ...empty("SubscriptionConfirmation", 200, true), confirmUrl }
}

/**
 * Before WooCommerce saves a webhook, it posts a form that contains only the webhook's number. The form is unsigned and expects 200
 * (`WC_Webhook::deliver_ping`).
 */
export const wooCommerceHandshake: HandshakeOf = ({ body, headers, method }) => {
  if (method !== "POST" || body.length > 64 || headers["x-wc-webhook-signature"] !== undefined) return null
  return /^webhook_id=\d{1,20}$/.test(Buffer.from(body).toString("latin1")) ? empty("ping", 200, false) : null
}
