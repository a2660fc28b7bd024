import { singleParameter } from "@tidegate/verification/providers/Presented"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { runToEnd } from "@tidegate/runtime/Resumable"
import { Effect, type Schema } from "effect"
import {
  type Adapter,
  type CallbackMessage,
  type Context,
  type Notification,
  type ProviderError,
  type Subscription
} from "../Adapter.ts"
import { entryItem, parsingFeed } from "../FeedDocument.ts"
import { textOf } from "../Foreign.ts"
import { maxFatBytes } from "../Items.ts"
import { answered, invalid, maxPageBytes } from "./Answers.ts"
import { isHmac, isReflected, reflecting, refusedHandshake, rejected, reply, shown } from "./Replies.ts"

/**
 * WebSub (https://www.w3.org/TR/websub/): a feed names its hub, and the hub sends new entries to those that subscribe. The hub is
 * `externalChannelId` of a subscription, the topic is its `externalResourceId`.
 */

/** Ten days, the usual lease of hubs. */
const leaseSeconds = 864_000

interface Hub {
  readonly hub: string
  readonly topic: string
}

const longestUrl = 1_024

/** The links of a header, by relation: the first of each. */
const linksIn = (header: string): ReadonlyMap<string, string> => {
  const links = new Map<string, string>()
  for (const [, href, parameters] of header.matchAll(/<([^<>]*)>([^<,"]*(?:"[^"]*"[^<,"]*)*)/g)) {
    const rel = /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s",;]+))/i.exec(parameters ?? "")
    for (const relation of (rel?.[1] ?? rel?.[2] ?? "").toLowerCase().split(/\s+/)) {
      if (relation !== "" && !links.has(relation)) links.set(relation, href ?? "")
    }
  }
  return links
}

const absolute = (url: string | null | undefined, base: string): string | null => {
  const found = url === null || url === undefined ? null : URL.parse(url, base)
  return found !== null && /^https?:$/.test(found.protocol) && found.href.length <= longestUrl ? found.href : null
}

/** The hub and the topic of a feed: its header names them, otherwise the feed itself. */
const discover = (context: Context): Effect.Effect<Hub, ProviderError> =>
  Effect.gen(function* () {
    const url = textOf(context.inputs, "url") ?? ""
    const what = "reading the feed"
    const answer = yield* answered(
      context,
      { method: "GET", url, headers: feedHeaders, authorized: false, maxAnswerBytes: maxPageBytes },
      what
    )
    const links = linksIn(answer.headers["link"] ?? "")
    const inHeader = links.has("hub") && links.has("self")
    const feed = inHeader ? null : yield* inSlices(parsingFeed(answer.body, answer.headers["content-type"] ?? null))
    const hub = absolute(links.get("hub") ?? feed?.hubs[0], url)
    // A feed that names no address of its own is subscribed to by the address at which it was found.
    const topic = absolute(links.get("self") ?? feed?.self ?? url, url)
    if (hub === null || topic === null) {
      return yield* invalid("the feed names no hub, so that it can only be polled", answer.status, true)
    }
    return { hub, topic }
  })

export const feedHeaders = {
  accept:
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, application/json;q=0.8, */*;q=0.1"
}

const ask = (
  context: Context,
  mode: "subscribe" | "unsubscribe",
  { hub, topic }: Hub,
  callback: string,
  secret: string
): Effect.Effect<void, ProviderError> => {
  const form: Record<string, string> = { "hub.callback": callback, "hub.mode": mode, "hub.topic": topic }
  if (mode === "subscribe") {
    form["hub.lease_seconds"] = String(leaseSeconds)
    form["hub.secret"] = secret
  }
  return Effect.asVoid(
    answered(
      context,
      {
        method: "POST",
        url: hub,
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(form).toString(),
        authorized: false
      },
      `asking the hub to ${mode}`,
      mode === "subscribe" ? [] : [404, 410]
    )
  )
}

const hubOf = ({ externalChannelId: hub, externalResourceId: topic }: Subscription): Hub | null =>
  hub === null || topic === null ? null : { hub, topic }

/**
 * The hub verifies a subscription with a GET. It may do so before its answer to the subscription is stored, when the topic is not known
 * yet: then any topic is accepted, because only the hub that was asked knows the callback's URL. A topic that is known must be the one.
 */
const verified = (subscription: Subscription, query: string, receivedAt: number): Notification => {
  const [mode, topic, challenge] = ["mode", "topic", "challenge"].map((name) => singleParameter(query, `hub.${name}`))
  const expected = subscription.externalResourceId
  if (topic === null || topic === undefined || (expected !== null && topic !== expected)) {
    return refusedHandshake(404, "the hub named another topic")
  }
  if (mode === "denied") {
    return {
      kind: "lifecycle",
      what: "denied",
      reason: shown(singleParameter(query, "hub.reason"), "the hub gave no reason"),
      reply: reply(200)
    }
  }
  const isEnded = subscription.ended === true
  if (!isReflected(challenge ?? null) || (mode !== "subscribe" && mode !== "unsubscribe")) {
    return refusedHandshake(404, "the request is no verification")
  }
  // Only a change that the gateway has asked for is confirmed. Otherwise a stranger who knows the URL could end the subscription, or start it again.
  if (isEnded !== (mode === "unsubscribe")) return refusedHandshake(404, `${mode} was not asked for`)
  if (isEnded) return { kind: "ping", reply: reflecting(challenge!) }
  const lease = /^\d{1,9}$/.exec(singleParameter(query, "hub.lease_seconds") ?? "")
  return {
    kind: "handshake",
    accepted: true,
    reason: null,
    expiresAt: receivedAt + (lease === null ? leaseSeconds : Number(lease[0])) * 1_000,
    reply: reflecting(challenge!)
  }
}

const algorithms = ["sha1", "sha256", "sha384", "sha512"] as const

/** Fails closed: without a valid signature, the content is dropped. The hub gets 202 nevertheless, as WebSub requires. */
const isSigned = ({ secret }: Subscription, inputs: Schema.JsonObject, { body, headers }: CallbackMessage): boolean => {
  const [name, signature = ""] = (headers["x-hub-signature"] ?? "").split("=")
  const algorithm = algorithms.find((one) => one === name)
  if (algorithm === undefined || (algorithm === "sha1" && inputs["require_sha256"] === true)) return false
  return isHmac(signature, algorithm, secret, body)
}

const received = (subscription: Subscription, inputs: Schema.JsonObject, message: CallbackMessage): Notification => {
  if (message.method === "GET") return verified(subscription, message.query, message.receivedAt)
  if (!isSigned(subscription, inputs, message)) return rejected(202, "the signature is missing or wrong")
  const dirty: Notification = { kind: "dirty", messageNumber: null, occurredAt: null, reply: reply(202) }
  if (message.body.length > maxFatBytes) return dirty
  const feed = runToEnd(parsingFeed(message.body, message.headers["content-type"] ?? null))
  // The content may be of any type, or empty. Then a poll of the feed finds the new entries.
  if (feed === null || feed.entries.length === 0) return dirty
  const items = feed.entries.map((entry) => entryItem(feed, entry)).toReversed()
  return { kind: "items", items, occurredAt: items.at(-1)?.occurredAt ?? null, reply: reply(202) }
}

export const webSub: Adapter = {
  key: "websub",
  targets: (inputs) => [{ key: `topic:${textOf(inputs, "url") ?? ""}`.slice(0, 512) }],
  provision: (context, subscription, callback) =>
    Effect.gen(function* () {
      const hub = yield* discover(context)
      yield* ask(context, "subscribe", hub, callback, subscription.secret)
      return { externalChannelId: hub.hub, externalResourceId: hub.topic, expiresAt: null, state: "verifying" }
    }),
  renew: (context, subscription, callback) =>
    Effect.gen(function* () {
      const hub = hubOf(subscription) ?? (yield* discover(context))
      yield* ask(context, "subscribe", hub, callback, subscription.secret)
      const { expiresAt } = subscription
      return { externalChannelId: hub.hub, externalResourceId: hub.topic, expiresAt, state: "verifying" }
    }),
  stop: (context, subscription, callback) =>
    Effect.gen(function* () {
      const known = hubOf(subscription)
      // The hub was never asked, or its answer is lost and no verification was confirmed: it has no subscription.
      if (known === null && subscription.expiresAt === null) return
      const hub = known ?? (yield* discover(context))
      yield* ask(context, "unsubscribe", hub, callback, subscription.secret)
    }),
  receive: received
}
