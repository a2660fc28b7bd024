import { createHash, createHmac } from "node:crypto"
import type { ProviderAnswer, ProviderRequest } from "../../src/Adapter.ts"

/* What the protocols of the fake provider share: their subscriptions, the changes, and the callbacks that wait. */

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
  /** A hub sends the feed as it is then, and not only the new entry. */
  sendsWholeFeeds: boolean
}

export interface FakeOptions {
  /** Where the provider is, for example `https://provider.test`. */
  readonly origin: string
  /** Unix ms. */
  readonly now: () => number
  /** The access token that calls must carry; null: calls need none. */
  readonly token?: string | null
}

export interface Change {
  readonly number: number
  readonly trigger: FakeTrigger
  readonly target: string
  readonly at: number
  /** The id of the item that a source makes of it. */
  readonly item: string
  readonly value: Readonly<Record<string, unknown>>
}

export const day = 86_400_000

export const iso = (at: number): string => new Date(at).toISOString()
export const wholeSeconds = (at: number): string => iso(at).replace(/\.\d+Z$/, "Z")

export const hmac = (algorithm: string, secret: string, text: string): string =>
  createHmac(algorithm, secret).update(text).digest("hex")

export const sha1 = (text: string): string => createHash("sha1").update(text).digest("hex")

const bytes = (text: string): Uint8Array => Buffer.from(text, "utf8")

export const answer = (status: number, body = "", headers: Readonly<Record<string, string>> = {}): ProviderAnswer => ({
  status,
  headers,
  body: bytes(body),
  truncated: false
})

export const json = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): ProviderAnswer =>
  answer(status, JSON.stringify(value), { "content-type": "application/json", ...headers })

export const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)

export const textOf = (body: string | Uint8Array | undefined): string =>
  body === undefined ? "" : typeof body === "string" ? body : Buffer.from(body).toString("utf8")

/** Everything before the question mark is kept, as WebSub demands. */
export const withQuery = (url: string, query: Readonly<Record<string, string>>): string =>
  url + (url.includes("?") ? "&" : "?") + new URLSearchParams(query).toString()

/** What a protocol answers to a request. */
export type Routes = ReadonlyArray<
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
>

export class Service {
  readonly origin: string
  readonly now: () => number
  readonly faults: Faults = {
    handshake: "right",
    signature: "right",
    notifications: "send",
    life: null,
    forgetsCursors: false,
    sendsWholeFeeds: false
  }
  /** How the subscriptions' callbacks answered, in order. */
  readonly answers: Array<{ readonly callback: FakeCallback; readonly answer: CallbackAnswer }> = []
  readonly subscriptions = new Map<string, FakeSubscription>()
  readonly changes: Array<Change> = []
  /** The callbacks that are to be sent now, and those that are held back. */
  callbacks: Array<FakeCallback> = []
  held: Array<FakeCallback> = []
  /** Of the newest thing: changes, subscriptions and messages are counted together. */
  number = 0
  /** Cursors that are smaller than this are not known any more. */
  oldestCursor = 0

  constructor({ now, origin }: Pick<FakeOptions, "now" | "origin">) {
    this.origin = origin
    this.now = now
  }

  of(trigger: FakeTrigger, target: string): ReadonlyArray<Change> {
    return this.changes.filter((one) => one.trigger === trigger && one.target === target)
  }

  isForgotten(cursor: number): boolean {
    return this.faults.forgetsCursors || cursor < this.oldestCursor
  }

  isOver({ expiresAt }: FakeSubscription): boolean {
    return expiresAt !== null && expiresAt <= this.now()
  }

  #queue(callback: FakeCallback): void {
    if (callback.purpose !== "notification") {
      this.callbacks.push(callback)
      return
    }
    if (this.faults.notifications === "reorder") this.callbacks.unshift(callback)
    else this.callbacks.push(callback)
    if (this.faults.notifications === "duplicate") this.callbacks.push(callback)
  }

  send(
    { callback, id }: FakeSubscription,
    purpose: FakeCallback["purpose"],
    message: Partial<Omit<FakeCallback, "purpose" | "subscription">>
  ): void {
    this.#queue({ purpose, subscription: id, method: "POST", url: callback, headers: {}, body: "", ...message })
  }

  /** Sends a handshake, or not, or later. */
  shake(subscription: FakeSubscription, message: Partial<FakeCallback>, purpose: FakeCallback["purpose"]): void {
    if (this.faults.handshake === "skip") return
    const before = this.callbacks.length
    this.send(subscription, purpose, message)
    if (this.faults.handshake === "delay") this.held.push(...this.callbacks.splice(before))
  }

  lifeOf(asked: number, longest: number): number {
    return this.now() + (this.faults.life ?? Math.min(asked, longest))
  }

  keep(
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

  end(id: string): ProviderAnswer {
    return this.subscriptions.delete(id) ? answer(204) : json(404, { message: "Not Found" })
  }
}
