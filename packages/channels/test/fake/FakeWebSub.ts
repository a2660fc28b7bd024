import type { ProviderAnswer, ProviderRequest } from "../../src/Adapter.ts"
import {
  iso,
  hmac,
  answer,
  json,
  escaped,
  withQuery,
  type FakeCallback,
  type FakeSubscription,
  type Change,
  type Service,
  type Routes
} from "./Service.ts"

/** Feeds and lists, and the hub of WebSub. */
export class FakeWebSub {
  readonly #service: Service

  constructor(service: Service) {
    this.#service = service
  }

  readonly routes: Routes = [
    ["GET", /^\/feeds\/([\w.-]+)$/, ([name = ""], _, __, request) => this.#feed(name, request)],
    ["POST", /^\/hub$/, (_, __, body) => this.#hub(new URLSearchParams(body))],
    ["GET", /^\/lists\/([\w.-]+)$/, ([name = ""], query, _, request) => this.#list(name, query, request)]
  ]

  #topicOf(name: string): string {
    return `${this.#service.origin}/feeds/${name}`
  }

  #feed(name: string, request: ProviderRequest): ProviderAnswer {
    const entries = this.#service.of("entry.added", name)
    const etag = `"${name}-${entries.length}"`
    if (request.headers?.["if-none-match"] === etag) return answer(304, "", { etag })
    return answer(200, this.feedText(name, entries.toReversed()), {
      "content-type":
        { atom: "application/atom+xml", rss: "application/rss+xml" }[name.split(".").at(-1) ?? ""] ??
        "application/feed+json",
      etag,
      link: `<${this.#service.origin}/hub>; rel="hub", <${this.#topicOf(name)}>; rel="self"`
    })
  }

  /** The text of a feed, by the ending of its name: `atom`, `rss` or `json`. */
  feedText(name: string, entries: ReadonlyArray<Change>): string {
    const of = (change: Change) => change.value as { id: string; url: string; title: string; content: string }
    if (name.endsWith(".atom")) {
      return [
        '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">',
        `<title>${name}</title><id>${this.#topicOf(name)}</id><updated>${iso(this.#service.now())}</updated>`,
        `<link rel="hub" href="${this.#service.origin}/hub"/><link rel="self" href="${this.#topicOf(name)}"/>`,
        ...entries.map((change) => {
          const { content, id, title, url } = of(change)
          return `<entry><id>${id}</id><title>${escaped(title)}</title><link href="${url}"/><updated>${iso(change.at)}</updated><content type="html">${escaped(content)}</content></entry>`
        }),
        "</feed>"
      ].join("\n")
    }
    if (name.endsWith(".rss")) {
      return [
        '<?xml version="1.0"?><rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel>',
        `<title>${name}</title><link>${this.#service.origin}</link><description>d</description>`,
        `<atom:link rel="hub" href="${this.#service.origin}/hub"/><atom:link rel="self" href="${this.#topicOf(name)}"/>`,
        ...entries.map((change) => {
          const { content, id, title, url } = of(change)
          return `<item><guid isPermaLink="false">${id}</guid><title>${escaped(title)}</title><link>${url}</link><pubDate>${new Date(change.at).toUTCString()}</pubDate><description>${escaped(content)}</description></item>`
        }),
        "</channel></rss>"
      ].join("\n")
    }
    return JSON.stringify({
      version: "https://jsonfeed.org/version/1.1",
      title: name,
      feed_url: this.#topicOf(name),
      hubs: [{ type: "WebSub", url: `${this.#service.origin}/hub` }],
      items: entries.map((change) => {
        const { content, id, title, url } = of(change)
        return { id, url, title, content_html: content, date_published: iso(change.at) }
      })
    })
  }

  #hub(form: URLSearchParams): ProviderAnswer {
    const [mode, topic, callback] = ["hub.mode", "hub.topic", "hub.callback"].map((name) => form.get(name) ?? "")
    const known = [...this.#service.subscriptions.values()].find(
      (one) => one.protocol === "websub" && one.callback === callback && one.resource === topic
    )
    if (topic === undefined || callback === undefined || !topic.startsWith(`${this.#service.origin}/feeds/`)) {
      return answer(400, "unknown topic")
    }
    if (mode === "unsubscribe") {
      if (known !== undefined) {
        const query = { "hub.mode": "unsubscribe", "hub.topic": topic, "hub.challenge": known.challenge }
        this.#service.shake(known, { method: "GET", url: withQuery(callback, query) }, "unsubscription")
      }
      return answer(202)
    }
    if (mode !== "subscribe") return answer(400, "unknown mode")
    const lease = Math.ceil(
      (this.#service.faults.life ?? Number(form.get("hub.lease_seconds") ?? "864000") * 1_000) / 1_000
    )
    const subscription = this.#service.keep({
      id: known?.id ?? `ws${++this.#service.number}`,
      protocol: "websub",
      callback,
      secret: form.get("hub.secret") ?? "",
      resource: topic,
      watches: (trigger, target) => trigger === "entry.added" && this.#topicOf(target) === topic,
      state: known?.state ?? "pending",
      expiresAt: this.#service.now() + lease * 1_000
    })
    const query = {
      "hub.mode": "subscribe",
      "hub.topic": this.#service.faults.handshake === "wrong" ? `${topic}?other` : topic,
      "hub.challenge": subscription.challenge,
      "hub.lease_seconds": String(lease)
    }
    this.#service.shake(subscription, { method: "GET", url: withQuery(callback, query) }, "handshake")
    return answer(202)
  }

  revocation({ callback, resource }: FakeSubscription, reason: string): Partial<FakeCallback> {
    const query = { "hub.mode": "denied", "hub.topic": resource, "hub.reason": reason }
    return { method: "GET", url: withQuery(callback, query) }
  }

  message({ resource, secret }: FakeSubscription, change: Change): Partial<FakeCallback> {
    const { faults } = this.#service
    const all = faults.sendsWholeFeeds ? this.#service.of("entry.added", change.target) : [change]
    const body = this.feedText(change.target, all.slice(0, all.indexOf(change) + 1).toReversed())
    const key = faults.signature === "right" ? secret : "another"
    return {
      headers: {
        "content-type": change.target.endsWith(".json") ? "application/feed+json" : "application/xml",
        "x-hub-signature": `sha256=${hmac("sha256", key, body)}`,
        link: `<${this.#service.origin}/hub>; rel="hub", <${resource}>; rel="self"`
      },
      body
    }
  }

  #list(name: string, query: URLSearchParams, request: ProviderRequest): ProviderAnswer {
    const since = Date.parse(query.get("since") ?? "")
    const items = this.#service.of("item.added", name).filter(({ at }) => Number.isNaN(since) || at >= since)
    const etag = `"${name}-${this.#service.number}"`
    if (request.headers?.["if-none-match"] === etag) return answer(304, "", { etag })
    return json(200, { data: { items: items.map(({ value }) => value) } }, { etag })
  }
}
