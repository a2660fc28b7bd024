import { createHash, createHmac } from "node:crypto"
import type { ProviderAnswer, ProviderRequest } from "../../src/Adapter.ts"

/*
 * A provider in memory. It speaks all protocols of the adapters (WebSub, watch channels, Graph subscriptions, EventSub, repository
 * webhooks) and has the lists that the pollers read. It does no I/O: `handle` answers a request, and the callbacks that it would
 * send wait in a list, so that a test decides when they arrive. `FakeCalls.ts` makes a `Call` of it, `FakeProviderServer.ts` an HTTP
 * server.
 */

/** A request that the provider sends to a subscription's callback. */
export interface FakeCallback {
  readonly purpose: "handshake" | "notification" | "ping" | "lifecycle" | "unsubscription"
  /** The subscription that it belongs to. */
  readonly subscription: string
  readonly method: "GET" | "POST"
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface CallbackAnswer {
  readonly status: number
  readonly body: string
}

/** An answer that waits for the answer of a callback: Graph validates a URL before it accepts the subscription. */
export interface Pending {
  readonly callback: FakeCallback
  readonly resume: (answer: CallbackAnswer) => ProviderAnswer
}

/** What can happen at the provider, by the keys of the triggers. */
export type FakeTrigger =
  | "entry.added"
  | "item.added"
  | "calendar.event.changed"
  | "drive.changed"
  | "message.created"
  | "drive_item.changed"
  | "stream.online"
  | "channel.follow"
  | "push"
  | "issue.changed"
  | "release.published"

export type FakeProtocol = "websub" | "watch" | "graph" | "eventsub" | "repo_webhook"

export interface FakeSubscription {
  /** The id at the provider. */
  readonly id: string
  readonly protocol: FakeProtocol
  readonly callback: string
  readonly secret: string
  /** The trigger whose changes it is told, and of what: a topic, a calendar, a folder, a repository. */
  readonly watches: (trigger: FakeTrigger, target: string) => boolean
  /** The topic, resource or type as it was asked for. */
  readonly resource: string
  state: "pending" | "active"
  expiresAt: number | null
  messages: number
  challenge: string
}

/** How the provider misbehaves. A test sets the members. */
export interface Faults {
  /** `wrong`: of another topic or with another token. `delay`: waits until `releaseHandshakes`. `skip`: never comes. */
  handshake: "right" | "wrong" | "delay" | "skip"
  /** Of notifications: signatures, tokens and client states. */
  signature: "right" | "wrong"
  /** `drop`: lost silently. `duplicate`: sent twice. `reorder`: the newest first. */
  notifications: "send" | "drop" | "duplicate" | "reorder"
  /** The life of new subscriptions (ms); null: what was asked for, or the protocol's usual one. */
  life: number | null
  /** Cursors of before are not known any more. */
  forgetsCursors: boolean
}

export interface FakeOptions {
  /** Where the provider is, for example `https://provider.test`. */
  readonly origin: string
  /** Unix ms. */
  readonly now: () => number
  /** The access token that calls must carry; null: calls need none. */
  readonly token?: string | null
}

interface Change {
  readonly number: number
  readonly trigger: FakeTrigger
  readonly target: string
  readonly at: number
  /** The id of the item that a source makes of it. */
  readonly item: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Refusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly path: RegExp
  left: number
}

/** The target of a change where a test names none: what the samples of the triggers watch. */
export const usualTargets: Readonly<Record<FakeTrigger, string>> = {
  "entry.added": "news.atom",
  "item.added": "orders",
  "calendar.event.changed": "primary",
  "drive.changed": "changes",
  "message.created": "inbox",
  "drive_item.changed": "root",
  "stream.online": "1337",
  "channel.follow": "1337",
  push: "acme/shop",
  "issue.changed": "acme/shop",
  "release.published": "acme/shop"
}

const day = 86_400_000

const iso = (at: number): string => new Date(at).toISOString()
const wholeSeconds = (at: number): string => iso(at).replace(/\.\d+Z$/, "Z")

const hmac = (algorithm: string, secret: string, text: string): string =>
  createHmac(algorithm, secret).update(text).digest("hex")

const sha1 = (text: string): string => createHash("sha1").update(text).digest("hex")

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

const answer = (status: number, body = "", headers: Readonly<Record<string, string>> = {}): ProviderAnswer => ({
  status,
  headers,
  body: bytes(body),
  truncated: false
})

const json = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): ProviderAnswer =>
  answer(status, JSON.stringify(value), { "content-type": "application/json", ...headers })

const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

const textOf = (body: string | Uint8Array | undefined): string =>
  body === undefined ? "" : typeof body === "string" ? body : Buffer.from(body).toString("utf8")

/** Everything before the question mark is kept, as WebSub demands. */
const withQuery = (url: string, query: Readonly<Record<string, string>>): string =>
  url + (url.includes("?") ? "&" : "?") + new URLSearchParams(query).toString()

export class FakeProvider {
  readonly origin: string
  readonly now: () => number
  token: string | null
  readonly faults: Faults = {
    handshake: "right",
    signature: "right",
    notifications: "send",
    life: null,
    forgetsCursors: false
  }
  /** Every request, in order. */
  readonly requests: Array<ProviderRequest> = []
  /** How the subscriptions' callbacks answered, in order. */
  readonly answers: Array<{ readonly callback: FakeCallback; readonly answer: CallbackAnswer }> = []
  readonly subscriptions = new Map<string, FakeSubscription>()
  readonly #changes: Array<Change> = []
  #callbacks: Array<FakeCallback> = []
  #held: Array<FakeCallback> = []
  readonly #refusals: Array<Refusal> = []
  #number = 0
  /** Cursors that are smaller than this are not known any more. */
  #oldestCursor = 0

  constructor({ now, origin, token = null }: FakeOptions) {
    this.origin = origin
    this.now = now
    this.token = token
  }

  /* For tests. */

  /** Something happens. Subscriptions are notified. Returns the id of the item that a source must get of it. */
  change(trigger: FakeTrigger, target: string = usualTargets[trigger], more: Readonly<Record<string, unknown>> = {}) {
    const change = this.#record(trigger, target, more)
    if (this.faults.notifications !== "drop") this.#notify(change)
    return change.item
  }

  /** The next requests are answered with this status. */
  refuse(
    status: number,
    {
      headers = {},
      path = /^/,
      times = 1
    }: { readonly headers?: Readonly<Record<string, string>>; readonly path?: RegExp; readonly times?: number } = {}
  ): void {
    this.#refusals.push({ status, headers, path, left: times })
  }

  /** Answers as usual again. */
  recover(): void {
    this.#refusals.length = 0
  }

  /** The callbacks that are to be sent now. The test sends each, and tells `answered` how it was answered. */
  takeCallbacks(): ReadonlyArray<FakeCallback> {
    const callbacks = this.#callbacks
    this.#callbacks = []
    return callbacks
  }

  /** Whether callbacks wait. */
  get hasCallbacks(): boolean {
    return this.#callbacks.length > 0
  }

  /** Sends the handshakes that `faults.handshake` "delay" has held back. */
  releaseHandshakes(): void {
    this.#callbacks.push(...this.#held)
    this.#held = []
  }

  /** How a callback was answered. */
  answered(callback: FakeCallback, given: CallbackAnswer): void {
    this.answers.push({ callback, answer: given })
    const subscription = this.subscriptions.get(callback.subscription)
    if (subscription === undefined) return
    const agreed = given.status >= 200 && given.status < 300 && given.body === subscription.challenge
    switch (callback.purpose) {
      case "handshake":
        if (subscription.protocol === "watch") return
        if (agreed) subscription.state = "active"
        // A renewal that is not confirmed leaves the subscription as it was.
        else if (subscription.state === "pending") this.subscriptions.delete(subscription.id)
        return
      case "unsubscription":
        if (agreed) this.subscriptions.delete(subscription.id)
        return
      default:
        if (given.status === 410 && subscription.protocol === "websub") this.subscriptions.delete(subscription.id)
    }
  }

  /** The subscriptions that are notified now. */
  get active(): ReadonlyArray<FakeSubscription> {
    return [...this.subscriptions.values()].filter((one) => one.state === "active" && !this.#isOver(one))
  }

  /** The provider ends the subscriptions, and says so if the protocol can. */
  revoke(reason = "authorization_revoked"): void {
    for (const subscription of this.active) {
      if (subscription.protocol === "eventsub") {
        this.#send(subscription, "lifecycle", this.#eventSub(subscription, "revocation", null, reason))
      } else if (subscription.protocol === "graph") {
        this.#send(subscription, "lifecycle", this.#graphLifecycle(subscription, "subscriptionRemoved"))
      } else if (subscription.protocol === "websub") {
        this.#send(subscription, "lifecycle", this.#denial(subscription, reason))
      }
      this.subscriptions.delete(subscription.id)
    }
  }

  /** Graph says something about its subscriptions. */
  lifecycle(event: "reauthorizationRequired" | "subscriptionRemoved" | "missed"): void {
    for (const subscription of this.active) {
      if (subscription.protocol === "graph") {
        this.#send(subscription, "lifecycle", this.#graphLifecycle(subscription, event))
      }
    }
  }

  /** All cursors that were given out until now become unknown. */
  forgetCursors(): void {
    this.#oldestCursor = this.#number + 1
    this.#number++
  }

  /* The provider. */

  handle(request: ProviderRequest): ProviderAnswer | Pending {
    this.requests.push(request)
    const url = new URL(request.url)
    const refusal = this.#refusals.find(({ left, path }) => left > 0 && path.test(url.pathname))
    if (refusal !== undefined) {
      refusal.left--
      return json(refusal.status, { error: { code: refusal.status, message: "refused" } }, refusal.headers)
    }
    const isPublic = /^\/(?:feeds|lists|hub)\b/.test(url.pathname)
    if (!isPublic && this.token !== null && request.headers?.["authorization"] !== `Bearer ${this.token}`) {
      return json(401, { error: { code: 401, message: "Invalid Credentials" } })
    }
    const body = textOf(request.body)
    const path = decodeURIComponent(url.pathname).replace(/^\/api\/v[13]/, "")
    const query = url.searchParams
    for (const [method, pattern, go] of this.#routes) {
      const found = method === request.method ? pattern.exec(path) : null
      if (found !== null) return go(found.slice(1), query, body, request)
    }
    return json(404, { message: `there is no ${request.method} ${path}` })
  }

  readonly #routes: ReadonlyArray<
    readonly [
      method: ProviderRequest["method"],
      path: RegExp,
      go: (
        parts: ReadonlyArray<string>,
        query: URLSearchParams,
        body: string,
        request: ProviderRequest
      ) => ProviderAnswer | Pending
    ]
  > = [
    ["GET", /^\/feeds\/([\w.-]+)$/, ([name = ""], _, __, request) => this.#feed(name, request)],
    ["POST", /^\/hub$/, (_, __, body) => this.#hub(new URLSearchParams(body))],
    ["GET", /^\/lists\/([\w.-]+)$/, ([name = ""], query, _, request) => this.#list(name, query, request)],
    ["GET", /^\/calendar\/v3\/users\/me\/calendarList$/, () => json(200, { items: [{ id: "primary" }] })],
    ["GET", /^\/calendar\/v3\/calendars\/([^/]+)\/events$/, ([id = ""], query) => this.#events(id, query)],
    [
      "POST",
      /^\/calendar\/v3\/calendars\/([^/]+)\/events\/watch$/,
      ([id = ""], _, body) => this.#watch("calendar.event.changed", id, body)
    ],
    ["POST", /^\/calendar\/v3\/channels\/stop$/, (_, __, body) => this.#stopChannel(body)],
    [
      "GET",
      /^\/drive\/v3\/changes\/startPageToken$/,
      () => json(200, { kind: "drive#startPageToken", startPageToken: String(this.#number) })
    ],
    ["GET", /^\/drive\/v3\/changes$/, (_, query) => this.#driveChanges(query)],
    ["GET", /^\/drive\/v3\/files$/, (_, query) => this.#driveFiles(query)],
    ["POST", /^\/drive\/v3\/changes\/watch$/, (_, __, body) => this.#watch("drive.changed", "changes", body)],
    ["POST", /^\/drive\/v3\/channels\/stop$/, (_, __, body) => this.#stopChannel(body)],
    ["POST", /^\/v1\.0\/subscriptions$/, (_, __, body) => this.#graphSubscribe(body)],
    ["GET", /^\/v1\.0\/subscriptions$/, () => this.#graphSubscriptions()],
    ["PATCH", /^\/v1\.0\/subscriptions\/([\w-]+)$/, ([id = ""], _, body) => this.#graphRenew(id, body)],
    ["DELETE", /^\/v1\.0\/subscriptions\/([\w-]+)$/, ([id = ""]) => this.#end(id)],
    [
      "GET",
      /^\/v1\.0\/me\/mailFolders\/([^/]+)\/messages\/delta$/,
      ([folder = ""], query) => this.#delta("message.created", folder, query)
    ],
    [
      "GET",
      /^\/v1\.0\/(?:me\/drive|drives\/[^/]+)\/root\/delta$/,
      (_, query) => this.#delta("drive_item.changed", "root", query)
    ],
    ["POST", /^\/helix\/eventsub\/subscriptions$/, (_, __, body) => this.#eventSubSubscribe(body)],
    ["GET", /^\/helix\/eventsub\/subscriptions$/, (_, query) => this.#eventSubSubscriptions(query)],
    ["DELETE", /^\/helix\/eventsub\/subscriptions$/, (_, query) => this.#end(query.get("id") ?? "")],
    ["GET", /^\/helix\/streams$/, (_, query) => this.#streams(query)],
    ["GET", /^\/helix\/channels\/followers$/, (_, query) => this.#followers(query)],
    ["POST", /^\/repos\/([^/]+\/[^/]+)\/hooks$/, ([repo = ""], _, body) => this.#createHook(repo, body)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/hooks$/, ([repo = ""]) => this.#hooks(repo)],
    ["DELETE", /^\/repos\/[^/]+\/[^/]+\/hooks\/(\d+)$/, ([id = ""]) => this.#end(id)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/branches$/, ([repo = ""], query) => this.#branches(repo, query)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/issues$/, ([repo = ""], query) => this.#issues(repo, query)],
    ["GET", /^\/repos\/([^/]+\/[^/]+)\/releases$/, ([repo = ""], query) => this.#releases(repo, query)],
    ["GET", /^\/user$/, () => json(200, { id: 7, login: "acme-bot", email: "bot@acme.example" })],
    ["GET", /^\/oauth2\/v2\/userinfo$/, () => json(200, { id: "77", name: "Ada", email: "ada@acme.example" })],
    ["GET", /^\/v1\.0\/me$/, () => json(200, { id: "u-1", displayName: "Ada", mail: "ada@acme.example" })]
  ]

  /* Changes. */

  #of(trigger: FakeTrigger, target: string): ReadonlyArray<Change> {
    return this.#changes.filter((one) => one.trigger === trigger && one.target === target)
  }

  #record(trigger: FakeTrigger, target: string, more: Readonly<Record<string, unknown>>): Change {
    const number = ++this.#number
    const at = this.now()
    const [item, value] = this.#valueOf(trigger, target, number, at, more)
    const change = { number, trigger, target, at, item, value: { ...value, ...more } }
    this.#changes.push(change)
    return change
  }

  #valueOf(
    trigger: FakeTrigger,
    target: string,
    number: number,
    at: number,
    more: Readonly<Record<string, unknown>>
  ): readonly [item: string, value: Readonly<Record<string, unknown>>] {
    const seconds = Math.floor(at / 1_000)
    switch (trigger) {
      case "entry.added": {
        const id = `tag:provider.test,2026:${number}`
        const url = `${this.origin}/posts/${number}`
        return [`entry:${id}`, { id, url, title: `Post ${number} & more`, content: `<p>Text ${number}</p>` }]
      }
      case "item.added":
        return [`item:${number}`, { id: number, total: `${number}.00`, created_at: iso(at) }]
      case "calendar.event.changed": {
        const id = `event${number}`
        const value = { kind: "calendar#event", id, status: "confirmed", updated: iso(at), summary: `Event ${number}` }
        return [`event:${target}:${id}:${iso(at)}`, value]
      }
      case "drive.changed": {
        const file = { id: `file${number}`, name: `File ${number}`, version: String(number), modifiedTime: iso(at) }
        const value = {
          kind: "drive#change",
          changeType: "file",
          time: iso(at),
          removed: false,
          fileId: file.id,
          file: { kind: "drive#file", ...file }
        }
        return [`file:${file.id}:${number}`, value]
      }
      case "message.created": {
        const id = `AAMk${number}=`
        return [`message:${id}`, { id, subject: `Message ${number}`, receivedDateTime: iso(at) }]
      }
      case "drive_item.changed": {
        const [id, eTag] = [`01ITEM${number}`, `"{${number}},1"`]
        const value = { id, eTag, name: `Item ${number}.txt`, lastModifiedDateTime: iso(at), file: {} }
        return [`drive_item:${id}:${eTag}`, value]
      }
      case "stream.online": {
        const id = String(9_000 + number)
        return [`stream:${id}`, { id, type: "live", started_at: wholeSeconds(at) }]
      }
      case "channel.follow": {
        const user = String(5_000 + number)
        return [
          `follow:${target}:${user}:${seconds}`,
          { user_id: user, user_login: `user${number}`, user_name: `User${number}`, followed_at: wholeSeconds(at) }
        ]
      }
      case "push": {
        const [branch, sha] = [(more["branch"] as string | undefined) ?? "main", sha1(String(number))]
        return [`push:refs/heads/${branch}:${sha}`, { branch, sha }]
      }
      case "issue.changed": {
        const value = {
          id: 30_000 + number,
          number,
          title: `Issue ${number}`,
          state: "open",
          updated_at: wholeSeconds(at),
          html_url: `${this.origin}/${target}/issues/${number}`
        }
        return [`issue:${value.id}:${seconds}`, value]
      }
      default: {
        const value = {
          id: 40_000 + number,
          tag_name: `v${number}`,
          name: `Release ${number}`,
          draft: false,
          prerelease: false,
          published_at: wholeSeconds(at),
          html_url: `${this.origin}/${target}/releases/v${number}`
        }
        return [`release:${value.id}`, value]
      }
    }
  }

  /* Callbacks. */

  #isOver({ expiresAt }: FakeSubscription): boolean {
    return expiresAt !== null && expiresAt <= this.now()
  }

  #queue(callback: FakeCallback): void {
    if (callback.purpose !== "notification") {
      this.#callbacks.push(callback)
      return
    }
    if (this.faults.notifications === "reorder") this.#callbacks.unshift(callback)
    else this.#callbacks.push(callback)
    if (this.faults.notifications === "duplicate") this.#callbacks.push(callback)
  }

  #send(
    { callback, id }: FakeSubscription,
    purpose: FakeCallback["purpose"],
    message: Partial<Omit<FakeCallback, "purpose" | "subscription">>
  ): void {
    this.#queue({ purpose, subscription: id, method: "POST", url: callback, headers: {}, body: "", ...message })
  }

  /** Sends a handshake, or not, or later. */
  #shake(subscription: FakeSubscription, message: Partial<FakeCallback>, purpose: FakeCallback["purpose"]): void {
    if (this.faults.handshake === "skip") return
    const before = this.#callbacks.length
    this.#send(subscription, purpose, message)
    if (this.faults.handshake === "delay") this.#held.push(...this.#callbacks.splice(before))
  }

  #notify(change: Change): void {
    for (const subscription of this.active) {
      if (!subscription.watches(change.trigger, change.target)) continue
      switch (subscription.protocol) {
        case "websub":
          this.#send(subscription, "notification", this.#content(subscription, change))
          break
        case "watch":
          this.#send(subscription, "notification", this.#watchMessage(subscription, "exists"))
          break
        case "graph":
          this.#send(subscription, "notification", this.#graphMessage(subscription, change))
          break
        case "eventsub":
          this.#send(subscription, "notification", this.#eventSub(subscription, "notification", change, null))
          break
        case "repo_webhook":
          this.#send(subscription, "notification", this.#hookMessage(subscription, change))
      }
    }
  }

  #lifeOf(asked: number, longest: number): number {
    return this.now() + (this.faults.life ?? Math.min(asked, longest))
  }

  #keep(
    one: Pick<FakeSubscription, "callback" | "id" | "protocol" | "resource" | "secret" | "watches"> &
      Partial<FakeSubscription>
  ): FakeSubscription {
    const kept = {
      state: "pending" as const,
      expiresAt: null,
      messages: 0,
      challenge: sha1(`challenge ${one.id}`),
      ...one
    }
    this.subscriptions.set(kept.id, kept)
    return kept
  }

  #end(id: string): ProviderAnswer {
    return this.subscriptions.delete(id) ? answer(204) : json(404, { message: "Not Found" })
  }

  /* WebSub: feeds and their hub. */

  #topicOf(name: string): string {
    return `${this.origin}/feeds/${name}`
  }

  #feed(name: string, request: ProviderRequest): ProviderAnswer {
    const entries = this.#of("entry.added", name)
    const etag = `"${name}-${entries.length}"`
    if (request.headers?.["if-none-match"] === etag) return answer(304, "", { etag })
    return answer(200, this.feedText(name, entries.toReversed()), {
      "content-type":
        { atom: "application/atom+xml", rss: "application/rss+xml" }[name.split(".").at(-1) ?? ""] ??
        "application/feed+json",
      etag,
      link: `<${this.origin}/hub>; rel="hub", <${this.#topicOf(name)}>; rel="self"`
    })
  }

  /** The text of a feed, by the ending of its name: `atom`, `rss` or `json`. */
  feedText(name: string, entries: ReadonlyArray<Change>): string {
    const of = (change: Change) => change.value as { id: string; url: string; title: string; content: string }
    if (name.endsWith(".atom")) {
      return [
        '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom">',
        `<title>${name}</title><id>${this.#topicOf(name)}</id><updated>${iso(this.now())}</updated>`,
        `<link rel="hub" href="${this.origin}/hub"/><link rel="self" href="${this.#topicOf(name)}"/>`,
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
        `<title>${name}</title><link>${this.origin}</link><description>d</description>`,
        `<atom:link rel="hub" href="${this.origin}/hub"/><atom:link rel="self" href="${this.#topicOf(name)}"/>`,
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
      hubs: [{ type: "WebSub", url: `${this.origin}/hub` }],
      items: entries.map((change) => {
        const { content, id, title, url } = of(change)
        return { id, url, title, content_html: content, date_published: iso(change.at) }
      })
    })
  }

  #hub(form: URLSearchParams): ProviderAnswer {
    const [mode, topic, callback] = ["hub.mode", "hub.topic", "hub.callback"].map((name) => form.get(name) ?? "")
    const known = [...this.subscriptions.values()].find(
      (one) => one.protocol === "websub" && one.callback === callback && one.resource === topic
    )
    if (topic === undefined || callback === undefined || !topic.startsWith(`${this.origin}/feeds/`)) {
      return answer(400, "unknown topic")
    }
    if (mode === "unsubscribe") {
      if (known !== undefined) {
        const query = { "hub.mode": "unsubscribe", "hub.topic": topic, "hub.challenge": known.challenge }
        this.#shake(known, { method: "GET", url: withQuery(callback, query) }, "unsubscription")
      }
      return answer(202)
    }
    if (mode !== "subscribe") return answer(400, "unknown mode")
    const lease = Math.ceil((this.faults.life ?? Number(form.get("hub.lease_seconds") ?? "864000") * 1_000) / 1_000)
    const subscription = this.#keep({
      id: known?.id ?? `ws${++this.#number}`,
      protocol: "websub",
      callback,
      secret: form.get("hub.secret") ?? "",
      resource: topic,
      watches: (trigger, target) => trigger === "entry.added" && this.#topicOf(target) === topic,
      state: known?.state ?? "pending",
      expiresAt: this.now() + lease * 1_000
    })
    const query = {
      "hub.mode": "subscribe",
      "hub.topic": this.faults.handshake === "wrong" ? `${topic}?other` : topic,
      "hub.challenge": subscription.challenge,
      "hub.lease_seconds": String(lease)
    }
    this.#shake(subscription, { method: "GET", url: withQuery(callback, query) }, "handshake")
    return answer(202)
  }

  #denial({ callback, resource }: FakeSubscription, reason: string): Partial<FakeCallback> {
    const query = { "hub.mode": "denied", "hub.topic": resource, "hub.reason": reason }
    return { method: "GET", url: withQuery(callback, query) }
  }

  #content({ resource, secret }: FakeSubscription, change: Change): Partial<FakeCallback> {
    const body = this.feedText(change.target, [change])
    const key = this.faults.signature === "right" ? secret : "another"
    return {
      headers: {
        "content-type": change.target.endsWith(".json") ? "application/feed+json" : "application/xml",
        "x-hub-signature": `sha256=${hmac("sha256", key, body)}`,
        link: `<${this.origin}/hub>; rel="hub", <${resource}>; rel="self"`
      },
      body
    }
  }

  #list(name: string, query: URLSearchParams, request: ProviderRequest): ProviderAnswer {
    const since = Date.parse(query.get("since") ?? "")
    const items = this.#of("item.added", name).filter(({ at }) => Number.isNaN(since) || at >= since)
    const etag = `"${name}-${this.#number}"`
    if (request.headers?.["if-none-match"] === etag) return answer(304, "", { etag })
    return json(200, { data: { items: items.map(({ value }) => value) } }, { etag })
  }

  /* Watch channels. */

  #watch(trigger: FakeTrigger, target: string, body: string): ProviderAnswer {
    const asked = JSON.parse(body) as { id: string; address: string; token: string; expiration?: string }
    if (this.subscriptions.has(asked.id)) {
      const error = { errors: [{ reason: "channelIdNotUnique" }], code: 400, message: "Channel id not unique" }
      return json(400, { error })
    }
    const subscription = this.#keep({
      id: asked.id,
      protocol: "watch",
      callback: asked.address,
      secret: asked.token,
      resource: `res-${target}`,
      watches: (changed, of) => changed === trigger && of === target,
      state: "active",
      expiresAt: this.#lifeOf(asked.expiration === undefined ? 7 * day : Number(asked.expiration) - this.now(), 7 * day)
    })
    const sync = this.#watchMessage(subscription, "sync")
    const wrong = this.faults.handshake === "wrong" ? { "x-goog-channel-token": "another" } : {}
    this.#shake(subscription, { ...sync, headers: { ...sync.headers, ...wrong } }, "handshake")
    return json(200, {
      kind: "api#channel",
      id: subscription.id,
      resourceId: subscription.resource,
      resourceUri: `${this.origin}/${target}`,
      token: subscription.secret,
      expiration: String(subscription.expiresAt)
    })
  }

  #watchMessage(subscription: FakeSubscription, state: string) {
    const headers: Record<string, string> = {
      "x-goog-channel-id": subscription.id,
      "x-goog-channel-token": this.faults.signature === "right" ? subscription.secret : "another",
      "x-goog-message-number": String(++subscription.messages),
      "x-goog-resource-id": subscription.resource,
      "x-goog-resource-state": state
    }
    if (subscription.expiresAt !== null) {
      headers["x-goog-channel-expiration"] = new Date(subscription.expiresAt).toUTCString()
    }
    return { headers }
  }

  #stopChannel(body: string): ProviderAnswer {
    const { id, resourceId } = JSON.parse(body) as { id: string; resourceId: string }
    return this.subscriptions.get(id)?.resource === resourceId ? this.#end(id) : json(404, { error: { code: 404 } })
  }

  #events(calendar: string, query: URLSearchParams): ProviderAnswer {
    const sync = query.get("syncToken")
    const page = Number(query.get("pageToken") ?? "0")
    const after = sync === null ? 0 : Number(sync)
    if (sync !== null && this.#isForgotten(after)) {
      return json(410, {
        error: { errors: [{ reason: "fullSyncRequired" }], code: 410, message: "Sync token is no longer valid" }
      })
    }
    const least = Date.parse(query.get("updatedMin") ?? "")
    const all = this.#of("calendar.event.changed", calendar).filter(
      ({ at, number }) => number > after && (Number.isNaN(least) || at >= least)
    )
    const size = Number(query.get("maxResults") ?? "250")
    const more = all.length > page + size
    return json(200, {
      kind: "calendar#events",
      items: all.slice(page, page + size).map(({ value }) => value),
      ...(more ? { nextPageToken: String(page + size) } : { nextSyncToken: String(this.#number) })
    })
  }

  #isForgotten(cursor: number): boolean {
    return this.faults.forgetsCursors || cursor < this.#oldestCursor
  }

  #driveChanges(query: URLSearchParams): ProviderAnswer {
    const after = Number(query.get("pageToken"))
    if (this.#isForgotten(after)) return json(404, { error: { code: 404, message: "Page token not found" } })
    const all = this.#of("drive.changed", "changes").filter(({ number }) => number > after)
    const page = all.slice(0, Number(query.get("pageSize") ?? "100"))
    return json(200, {
      kind: "drive#changeList",
      changes: page.map(({ value }) => value),
      ...(page.length < all.length
        ? { nextPageToken: String(page.at(-1)?.number) }
        : { newStartPageToken: String(this.#number) })
    })
  }

  #driveFiles(query: URLSearchParams): ProviderAnswer {
    const files = this.#of("drive.changed", "changes")
      .toReversed()
      .map(({ value }) => value["file"])
    const from = Number(query.get("pageToken") ?? "0")
    const to = from + Number(query.get("pageSize") ?? "100")
    return json(200, { files: files.slice(from, to), ...(to < files.length ? { nextPageToken: String(to) } : {}) })
  }

  /* Graph. */

  #graphSubscribe(body: string): ProviderAnswer | Pending {
    const asked = JSON.parse(body) as Record<string, string>
    const resource = asked["resource"] ?? ""
    const folder = /mailFolders\('([^']+)'\)\/messages$/.exec(resource)?.[1]
    const callback = asked["notificationUrl"] ?? ""
    const longest = folder === undefined ? 42_300 * 60_000 : 4_230 * 60_000
    const expiresAt = this.#lifeOf(Date.parse(asked["expirationDateTime"] ?? "") - this.now(), longest)
    const id = sha1(`graph ${++this.#number}`).slice(0, 32)
    const challenge = `Validation: ${id}`
    const failed = json(400, {
      error: { code: "ValidationError", message: "The notification URL did not answer the validation" }
    })
    if (this.faults.handshake === "skip" || this.faults.handshake === "delay") return failed
    const validation: FakeCallback = {
      purpose: "handshake",
      subscription: id,
      method: "POST",
      url: withQuery(callback, { validationToken: challenge }),
      headers: { "content-type": "text/plain; charset=utf-8" },
      body: ""
    }
    return {
      callback: validation,
      resume: (given) => {
        this.answers.push({ callback: validation, answer: given })
        if (given.status !== 200 || given.body !== challenge || this.faults.handshake === "wrong") return failed
        this.#keep({
          id,
          protocol: "graph",
          callback,
          secret: asked["clientState"] ?? "",
          resource,
          watches: (trigger, target) =>
            folder === undefined
              ? trigger === "drive_item.changed"
              : trigger === "message.created" && target === folder,
          state: "active",
          expiresAt,
          challenge
        })
        return json(201, this.#graphShown(id))
      }
    }
  }

  #graphShown(id: string) {
    const { callback, expiresAt, resource } = this.subscriptions.get(id)!
    return { id, resource, notificationUrl: callback, expirationDateTime: iso(expiresAt ?? 0), clientState: null }
  }

  #graphSubscriptions(): ProviderAnswer {
    const all = [...this.subscriptions.values()].filter(({ protocol }) => protocol === "graph")
    return json(200, { value: all.map(({ id }) => this.#graphShown(id)) })
  }

  #graphRenew(id: string, body: string): ProviderAnswer {
    const subscription = this.subscriptions.get(id)
    if (subscription === undefined || this.#isOver(subscription)) {
      return json(404, { error: { code: "ResourceNotFound", message: "The object was not found." } })
    }
    const { expirationDateTime } = JSON.parse(body) as { expirationDateTime: string }
    const longest = subscription.resource.includes("mailFolders") ? 4_230 * 60_000 : 42_300 * 60_000
    subscription.expiresAt = this.#lifeOf(Date.parse(expirationDateTime) - this.now(), longest)
    return json(200, this.#graphShown(id))
  }

  #clientState({ secret }: FakeSubscription): string {
    return this.faults.signature === "right" ? secret : "another"
  }

  #graphMessage(subscription: FakeSubscription, { value }: Change): Partial<FakeCallback> {
    const notification = {
      subscriptionId: subscription.id,
      subscriptionExpirationDateTime: iso(subscription.expiresAt ?? 0),
      changeType: subscription.resource.includes("mailFolders") ? "created" : "updated",
      resource: subscription.resource,
      clientState: this.#clientState(subscription),
      resourceData: { "@odata.type": "#Microsoft.Graph.Message", id: value["id"] }
    }
    return { headers: { "content-type": "application/json" }, body: JSON.stringify({ value: [notification] }) }
  }

  #graphLifecycle(subscription: FakeSubscription, lifecycleEvent: string): Partial<FakeCallback> {
    const notification = {
      subscriptionId: subscription.id,
      subscriptionExpirationDateTime: iso(subscription.expiresAt ?? 0),
      clientState: this.#clientState(subscription),
      lifecycleEvent
    }
    return { headers: { "content-type": "application/json" }, body: JSON.stringify({ value: [notification] }) }
  }

  #delta(trigger: FakeTrigger, target: string, query: URLSearchParams): ProviderAnswer {
    const token = query.get("$deltatoken") ?? query.get("token")
    const path = trigger === "message.created" ? `me/mailFolders/${target}/messages/delta` : "me/drive/root/delta"
    const link = (name: string, to: number | string) => `${this.origin}/v1.0/${path}?${name}=${to}`
    const delta = trigger === "message.created" ? "$deltatoken" : "token"
    if (token === "latest") return json(200, { value: [], "@odata.deltaLink": link(delta, this.#number) })
    const after = Number(token ?? query.get("$skiptoken") ?? "0")
    if (token !== null && this.#isForgotten(after)) {
      return json(410, { error: { code: "resyncRequired", message: "Resync required" } }, { location: link(delta, "") })
    }
    const least = Date.parse(/receivedDateTime ge (\S+)/.exec(query.get("$filter") ?? "")?.[1] ?? "")
    const all = this.#of(trigger, target).filter(
      ({ at, number }) => number > after && (Number.isNaN(least) || at >= least)
    )
    const page = all.slice(0, 100)
    return json(200, {
      value: page.map(({ value }) => value),
      ...(page.length < all.length
        ? { "@odata.nextLink": link("$skiptoken", page.at(-1)?.number ?? 0) }
        : { "@odata.deltaLink": link(delta, this.#number) })
    })
  }

  /* EventSub. */

  #eventSubShown({ callback, id, resource, state }: FakeSubscription, status = "enabled") {
    const [type = "", broadcaster = ""] = resource.split(" ")
    return {
      id,
      status: state === "active" ? status : "webhook_callback_verification_pending",
      type,
      version: type === "channel.follow" ? "2" : "1",
      cost: 0,
      condition: { broadcaster_user_id: broadcaster },
      transport: { method: "webhook", callback },
      created_at: iso(this.now())
    }
  }

  #eventSubSubscribe(body: string): ProviderAnswer {
    const asked = JSON.parse(body) as {
      type: string
      condition: Record<string, string>
      transport: { callback: string; secret: string }
    }
    const resource = `${asked.type} ${asked.condition["broadcaster_user_id"]}`
    const { callback, secret } = asked.transport
    const all = [...this.subscriptions.values()].filter(({ protocol }) => protocol === "eventsub")
    if (all.some((one) => one.resource === resource && one.callback === callback)) {
      return json(409, { error: "Conflict", status: 409, message: "subscription already exists" })
    }
    if (secret.length < 10 || secret.length > 100) return json(400, { error: "Bad Request", status: 400 })
    const subscription = this.#keep({
      id: sha1(`eventsub ${++this.#number}`).slice(0, 36),
      protocol: "eventsub",
      callback,
      secret,
      resource,
      watches: (trigger, target) => `${trigger} ${target}` === resource
    })
    const message = this.#eventSub(subscription, "webhook_callback_verification", null, null)
    const wrong = this.faults.handshake === "wrong" ? { "twitch-eventsub-message-signature": "sha256=00" } : {}
    this.#shake(subscription, { ...message, headers: { ...message.headers, ...wrong } }, "handshake")
    return json(202, { data: [this.#eventSubShown(subscription)], total: 1, total_cost: 0, max_total_cost: 10_000 })
  }

  #eventSubSubscriptions(query: URLSearchParams): ProviderAnswer {
    const all = [...this.subscriptions.values()].filter(
      ({ protocol, resource }) =>
        protocol === "eventsub" && (query.get("type") === null || resource.startsWith(`${query.get("type")} `))
    )
    return json(200, { data: all.map((one) => this.#eventSubShown(one)), total: all.length, pagination: {} })
  }

  #eventSub(subscription: FakeSubscription, type: string, change: Change | null, status: string | null) {
    const shown = this.#eventSubShown(subscription, status ?? "enabled")
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
    const id = sha1(`message ${++this.#number}`)
    const timestamp = iso(this.now())
    const secret = this.faults.signature === "right" ? subscription.secret : "another secret"
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
      const newest = this.#of("stream.online", user).at(-1)
      return newest === undefined
        ? []
        : [{ ...newest.value, user_id: user, user_login: `b${user}`, user_name: `B${user}` }]
    })
    return json(200, { data, pagination: {} })
  }

  #followers(query: URLSearchParams): ProviderAnswer {
    const all = this.#of("channel.follow", query.get("broadcaster_id") ?? "").toReversed()
    const from = Number(query.get("after") ?? "0")
    const to = from + Number(query.get("first") ?? "20")
    return json(200, {
      total: all.length,
      data: all.slice(from, to).map(({ value }) => value),
      pagination: to < all.length ? { cursor: String(to) } : {}
    })
  }

  /* Repositories. */

  #createHook(repo: string, body: string): ProviderAnswer {
    const asked = JSON.parse(body) as { events: ReadonlyArray<string>; config: { url: string; secret: string } }
    const known = [...this.subscriptions.values()].some(
      (one) => one.protocol === "repo_webhook" && one.callback === asked.config.url
    )
    if (known) {
      return json(422, {
        message: "Validation Failed",
        errors: [{ resource: "Hook", code: "custom", message: "Hook already exists on this repository" }]
      })
    }
    const triggers: Record<string, FakeTrigger> = {
      push: "push",
      issues: "issue.changed",
      release: "release.published"
    }
    const subscription = this.#keep({
      id: String(100 + ++this.#number),
      protocol: "repo_webhook",
      callback: asked.config.url,
      secret: asked.config.secret,
      resource: repo,
      watches: (trigger, target) => target === repo && asked.events.some((event) => triggers[event] === trigger),
      state: "active"
    })
    const ping = this.#signed(subscription, "ping", { zen: "Design for failure.", hook_id: Number(subscription.id) })
    this.#shake(subscription, ping, "ping")
    return json(201, this.#hookShown(subscription))
  }

  #hookShown({ callback, id }: FakeSubscription) {
    return { id: Number(id), name: "web", active: true, config: { url: callback, content_type: "json" } }
  }

  #hooks(repo: string): ProviderAnswer {
    const all = [...this.subscriptions.values()].filter(
      (one) => one.protocol === "repo_webhook" && one.resource === repo
    )
    return json(
      200,
      all.map((one) => this.#hookShown(one))
    )
  }

  #signed({ id, messages, secret }: FakeSubscription, event: string, payload: unknown): Partial<FakeCallback> {
    const body = JSON.stringify(payload)
    const key = this.faults.signature === "right" ? secret : "another"
    return {
      headers: {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": sha1(`${id} ${messages} ${body}`).slice(0, 36),
        "x-hub-signature-256": `sha256=${hmac("sha256", key, body)}`
      },
      body
    }
  }

  #hookMessage(subscription: FakeSubscription, { target, trigger, value }: Change): Partial<FakeCallback> {
    subscription.messages++
    const repository = { id: 1, full_name: target, name: target.split("/")[1] }
    if (trigger === "push") {
      const { branch, sha } = value as { branch: string; sha: string }
      const commits = [{ id: sha, message: "Work", timestamp: iso(this.now()) }]
      const payload = {
        ref: `refs/heads/${branch}`,
        before: sha1("0"),
        after: sha,
        deleted: false,
        commits,
        repository
      }
      return this.#signed(subscription, "push", payload)
    }
    return trigger === "issue.changed"
      ? this.#signed(subscription, "issues", { action: "opened", issue: value, repository })
      : this.#signed(subscription, "release", { action: "published", release: value, repository })
  }

  #paged(all: ReadonlyArray<unknown>, query: URLSearchParams): ProviderAnswer {
    const size = Number(query.get("per_page") ?? query.get("limit") ?? "30")
    const page = Number(query.get("page") ?? "1")
    const to = page * size
    return json(200, all.slice(to - size, to), {
      date: new Date(this.now()).toUTCString(),
      ...(to < all.length ? { link: `<${this.origin}/?page=${page + 1}>; rel="next"` } : {})
    })
  }

  #branches(repo: string, query: URLSearchParams): ProviderAnswer {
    const newest = new Map(this.#of("push", repo).map(({ value }) => [value["branch"], value["sha"]]))
    return this.#paged(
      [...newest].map(([name, sha]) => ({ name, commit: { sha, url: `${this.origin}/commits/${String(sha)}` } })),
      query
    )
  }

  #issues(repo: string, query: URLSearchParams): ProviderAnswer {
    const since = Date.parse(query.get("since") ?? "")
    const all = this.#of("issue.changed", repo).filter(
      ({ at }) => Number.isNaN(since) || Math.floor(at / 1_000) * 1_000 >= since
    )
    return this.#paged(
      (query.get("direction") === "asc" ? all : all.toReversed()).map(({ value }) => value),
      query
    )
  }

  #releases(repo: string, query: URLSearchParams): ProviderAnswer {
    return this.#paged(
      this.#of("release.published", repo)
        .toReversed()
        .map(({ value }) => value),
      query
    )
  }
}
