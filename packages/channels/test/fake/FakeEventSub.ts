import type { ProviderAnswer } from "../../src/Adapter.ts"
import {
  iso,
  hmac,
  sha1,
  json,
  type FakeCallback,
  type FakeSubscription,
  type Change,
  type Service,
  type Routes
} from "./Service.ts"

/** Streams and followers, and the subscriptions of EventSub. */
export class FakeEventSub {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  readonly routes: Routes = [
    ["POST", /^\/helix\/eventsub\/subscriptions$/, (_, __, body) => this.#subscribe(body)],
    ["GET", /^\/helix\/eventsub\/subscriptions$/, (_, query) => this.#subscriptions(query)],
    ["DELETE", /^\/helix\/eventsub\/subscriptions$/, (_, query) => this.#service.end(query.get("id") ?? "")],
    ["GET", /^\/helix\/streams$/, (_, query) => this.#streams(query)],
    ["GET", /^\/helix\/channels\/followers$/, (_, query) => this.#followers(query)]
  ]

  message(subscription: FakeSubscription, change: Change): Partial<FakeCallback> {
    return this.#message(subscription, "notification", change, null)
  }

  revocation(subscription: FakeSubscription, reason: string): Partial<FakeCallback> {
    return this.#message(subscription, "revocation", null, reason)
  }

  #shown({ callback, id, resource, state }: FakeSubscription, status = "enabled") {
    const [type = "", broadcaster = ""] = resource.split(" ")
    return {
      id,
      status: state === "active" ? status : "webhook_callback_verification_pending",
      type,
      version: type === "channel.follow" ? "2" : "1",
      cost: 0,
      condition: { broadcaster_user_id: broadcaster },
      transport: { method: "webhook", callback },
      created_at: iso(this.#service.now())
    }
  }

  #subscribe(body: string): ProviderAnswer {
    const asked = JSON.parse(body) as {
      type: string
      condition: Record<string, string>
      transport: { callback: string; secret: string }
    }
    const resource = `${asked.type} ${asked.condition["broadcaster_user_id"]}`
    const { callback, secret } = asked.transport
    const all = [...this.#service.subscriptions.values()].filter(({ protocol }) => protocol === "eventsub")
    if (all.some((one) => one.resource === resource && one.callback === callback)) {
      return json(409, { error: "Conflict", status: 409, message: "subscription already exists" })
    }
    if (secret.length < 10 || secret.length > 100) return json(400, { error: "Bad Request", status: 400 })
    const subscription = this.#service.keep({
      id: sha1(`eventsub ${++this.#service.number}`).slice(0, 36),
      protocol: "eventsub",
      callback,
      secret,
      resource,
      watches: (trigger, target) => `${trigger} ${target}` === resource
    })
    const message = this.#message(subscription, "webhook_callback_verification", null, null)
    const wrong = this.#service.faults.handshake === "wrong" ? { "twitch-eventsub-message-signature": "sha256=00" } : {}
    this.#service.shake(subscription, { ...message, headers: { ...message.headers, ...wrong } }, "handshake")
    return json(202, { data: [this.#shown(subscription)], total: 1, total_cost: 0, max_total_cost: 10_000 })
  }

  #subscriptions(query: URLSearchParams): ProviderAnswer {
    const all = [...this.#service.subscriptions.values()].filter(
      ({ protocol, resource }) =>
        protocol === "eventsub" && (query.get("type") === null || resource.startsWith(`${query.get("type")} `))
    )
    return json(200, { data: all.map((one) => this.#shown(one)), total: all.length, pagination: {} })
  }

  #message(subscription: FakeSubscription, type: string, change: Change | null, status: string | null) {
    const shown = this.#shown(subscription, status ?? "enabled")
    const broadcaster = subscription.resource.split(" ")[1] ?? ""
    const body = JSON.stringify({
      ...(type === "webhook_callback_verification" ? { challenge: subscription.challenge } : {}),
      subscription: shown,
      ...(change === null
        ? {}
        : {
            event: {
              ...change.value,
              broadcaster_user_id: broadcaster,
              broadcaster_user_login: `b${broadcaster}`,
              broadcaster_user_name: `B${broadcaster}`
            }
          })
    })
    const id = sha1(`message ${++this.#service.number}`)
    const timestamp = iso(this.#service.now())
    const secret = this.#service.faults.signature === "right" ? subscription.secret : "another secret"
    return {
      headers: {
        "content-type": "application/json",
        "twitch-eventsub-message-id": id,
        "twitch-eventsub-message-retry": "0",
        "twitch-eventsub-message-type": type,
        "twitch-eventsub-message-timestamp": timestamp,
        "twitch-eventsub-message-signature": `sha256=${hmac("sha256", secret, id + timestamp + body)}`,
        "twitch-eventsub-subscription-type": shown.type,
        "twitch-eventsub-subscription-version": shown.version
      } as Record<string, string>,
      body
    }
  }

  #streams(query: URLSearchParams): ProviderAnswer {
    const data = query.getAll("user_id").flatMap((user) => {
      const newest = this.#service.of("stream.online", user).at(-1)
      return newest === undefined
        ? []
        : [{ ...newest.value, user_id: user, user_login: `b${user}`, user_name: `B${user}` }]
    })
    return json(200, { data, pagination: {} })
  }

  #followers(query: URLSearchParams): ProviderAnswer {
    const all = this.#service.of("channel.follow", query.get("broadcaster_id") ?? "").toReversed()
    const from = Number(query.get("after") ?? "0")
    const to = from + Number(query.get("first") ?? "20")
    return json(200, {
      total: all.length,
      data: all.slice(from, to).map(({ value }) => value),
      pagination: to < all.length ? { cursor: String(to) } : {}
    })
  }
}
