import { parseJson } from "@tidegate/json/JsonText"
import { Effect, type Schema } from "effect"
import type {
  Adapter,
  CallbackMessage,
  Context,
  Item,
  Notification,
  ProviderError,
  Subscription,
  Target
} from "../Adapter.ts"
import { type Foreign, listOf, objectOf, textOf, timeOf } from "../Foreign.ts"
import { maxFatBytes } from "../Items.ts"
import { withQuery } from "../Query.ts"
import { failureOf, getJson, invalid, jsonOf, remove, sendJson } from "./Answers.ts"
import { isHmac, isReflected, reflecting, refusedHandshake, rejected, reply, shown } from "./Replies.ts"

/**
 * EventSub webhooks of Twitch (https://dev.twitch.tv/docs/eventsub/handling-webhook-events/). Messages are signed with the subscription's
 * secret and contain the event. A subscription has no end, but the service may revoke it.
 */

export interface EventSubType {
  readonly type: string
  readonly version: string
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  readonly condition: (inputs: Schema.JsonObject) => Readonly<Record<string, string>>
  /** The item of an event; null: it is none. */
  readonly item: (event: Foreign) => Item | null
}

const subscriptions = ({ baseUrl }: Context): string => `${baseUrl}/helix/eventsub/subscriptions`

/** Pages of subscriptions that are searched for one that was created before a crash. */
const maxPages = 10

/** The subscription that notifies a callback; undefined: there is none. */
const find = (context: Context, type: string, callback: string): Effect.Effect<unknown, ProviderError> =>
  Effect.gen(function* () {
    let after: string | null = null
    for (let page = 0; page < maxPages; page++) {
      const url = withQuery(subscriptions(context), { type, after })
      const list: unknown = yield* getJson(context, url, "listing the subscriptions")
      const found = listOf(list, "data").find((one) => textOf(one, "transport", "callback") === callback)
      after = textOf(list, "pagination", "cursor")
      if (found !== undefined || after === null) return found
    }
    return undefined
  })

const longestAge = 600_000
/** The service's clock may be ahead by this. */
const maxAhead = 300_000

const received = (
  { item }: EventSubType,
  { secret }: Subscription,
  { body, headers, method, receivedAt }: CallbackMessage
): Notification => {
  const header = (name: string): string => headers[`twitch-eventsub-message-${name}`] ?? ""
  const [id, sentAt, type] = [header("id"), header("timestamp"), header("type")]
  const [scheme, signature = ""] = header("signature").split("=")
  const isHandshake = type === "webhook_callback_verification"
  // Fails closed: a doubtful message is refused, because accepting one could accept a forgery.
  const refused = isHandshake ? refusedHandshake : rejected
  if (method !== "POST" || scheme !== "sha256" || id === "" || !isHmac(signature, "sha256", secret, id, sentAt, body)) {
    return refused(403, "the signature is missing or wrong")
  }
  const age = receivedAt - (timeOf(sentAt) ?? Number.NaN)
  if (!(age <= longestAge && age >= -maxAhead)) return refused(403, "the message is older than ten minutes")
  if (body.length > maxFatBytes) return { kind: "dirty", messageNumber: null, occurredAt: null, reply: reply(204) }
  const parsed = parseJson(body)
  if (parsed.kind !== "json") return refused(400, "the message is no JSON")
  if (isHandshake) {
    const challenge = textOf(parsed.value, "challenge")
    if (!isReflected(challenge)) return refusedHandshake(400, "the challenge is no plain text")
    return { kind: "handshake", accepted: true, reason: null, reply: reflecting(challenge) }
  }
  if (type === "revocation") {
    const reason = shown(textOf(parsed.value, "subscription", "status"), "the service gave no reason")
    return { kind: "lifecycle", what: "revoked", reason, reply: reply(204) }
  }
  if (type !== "notification") return { kind: "ping", reply: reply(204) }
  const found = item(objectOf(parsed.value, "event"))
  return found === null
    ? { kind: "dirty", messageNumber: null, occurredAt: null, reply: reply(204) }
    : { kind: "items", items: [found], occurredAt: found.occurredAt ?? timeOf(sentAt), reply: reply(204) }
}

export const eventSubAdapter = (row: EventSubType): Adapter => {
  const { condition, targets, type, version } = row
  return {
    key: "eventsub",
    targets,
    provision: (context, { secret }, callback) =>
      Effect.gen(function* () {
        const what = "creating the subscription"
        const answer = yield* sendJson(
          context,
          "POST",
          subscriptions(context),
          { type, version, condition: condition(context.inputs), transport: { method: "webhook", callback, secret } },
          what,
          [409]
        )
        const isKnown = answer.status === 409
        const made = isKnown ? yield* find(context, type, callback) : listOf(yield* jsonOf(answer, what), "data")[0]
        // It was created before a crash. The service verifies the callback only once, so a subscription that was not confirmed is useless. Then the
        // refusal counts, and another subscription takes its place.
        if (isKnown && textOf(made, "status") !== "enabled") return yield* failureOf(answer, context.now, what)
        const id = textOf(made, "id")
        if (id === null || id.length > 256) return yield* invalid(`${what}: the answer has no id`, answer.status)
        return {
          externalChannelId: id,
          externalResourceId: null,
          expiresAt: null,
          state: isKnown ? "active" : "verifying"
        }
      }),
    renew: null,
    stop: (context, { externalChannelId }, callback) =>
      Effect.gen(function* () {
        const id = externalChannelId ?? textOf(yield* find(context, type, callback), "id")
        if (id === null) return
        yield* remove(context, withQuery(subscriptions(context), { id }), "deleting the subscription")
      }),
    receive: (subscription, _, message) => received(row, subscription, message)
  }
}
