import { Data, type Effect, type Schema } from "effect"
import type { Resumable } from "@tidegate/runtime/Resumable"

/*
 * The two ways in which items of a provider arrive, each behind one interface: an adapter subscribes to notifications (instant
 * delivery), a poller reads lists (polling). Both are pure: they send nothing themselves, but describe requests to a `Call`.
 */

/** A request to the provider. */
export interface ProviderRequest {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE"
  /** Absolute. */
  readonly url: string
  /** By lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /**
   * Whether the credentials of the provider account are added. They are added only if the URL's origin is one of the provider's;
   * otherwise the call fails with `ACCOUNT_ORIGIN_REFUSED` and nothing is sent.
   */
  readonly authorized: boolean
  /** Bytes of the answer that are read. Default: 1 MiB. A longer answer has `truncated`. */
  readonly maxAnswerBytes?: number
}

export interface ProviderAnswer {
  readonly status: number
  /** By lower-case name; repeated headers are joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly truncated: boolean
}

/**
 * Why something at the provider failed. `permanent`: the same request would fail again, so that it is not repeated soon (401, 403,
 * 404, 410, a denied subscription). `message` holds no secret.
 */
export class ProviderError extends Data.TaggedError("ProviderError")<{
  readonly code: ProviderErrorCode
  readonly message: string
  readonly permanent: boolean
  /** The HTTP status; null: no answer came. */
  readonly status: number | null
  /** The wait that the provider asks for (ms); null: none. */
  readonly retryAfterMs: number | null
}> {}

/**
 * - `PROVIDER_UNREACHABLE`: no answer. `PROVIDER_UNAVAILABLE`: 5xx. `PROVIDER_RATE_LIMITED`: 429.
 * - `ACCOUNT_UNAUTHORIZED`: 401, or there is no valid token. `PROVIDER_FORBIDDEN`: 403. `PROVIDER_NOT_FOUND`: 404 or 410.
 * - `PROVIDER_REFUSED`: any other refusal. `PROVIDER_ANSWER_INVALID`: an answer that is not what the protocol says.
 * - `SUBSCRIPTION_DENIED`: the provider denied the subscription. `ACCOUNT_ORIGIN_REFUSED`: see `ProviderRequest.authorized`.
 */
export type ProviderErrorCode =
  | "PROVIDER_UNREACHABLE"
  | "PROVIDER_UNAVAILABLE"
  | "PROVIDER_RATE_LIMITED"
  | "ACCOUNT_UNAUTHORIZED"
  | "PROVIDER_FORBIDDEN"
  | "PROVIDER_NOT_FOUND"
  | "PROVIDER_REFUSED"
  | "PROVIDER_ANSWER_INVALID"
  | "SUBSCRIPTION_DENIED"
  | "ACCOUNT_ORIGIN_REFUSED"

/** Sends one request; fails only when no answer came, or when it may not be sent. The status is the caller's to judge. */
export type Call = (request: ProviderRequest) => Effect.Effect<ProviderAnswer, ProviderError>

/** What every method gets. */
export interface Context {
  readonly call: Call
  /** The base of the provider's API without a trailing slash: the account's `base_url` (it may have a path), or the row's origin. */
  readonly baseUrl: string
  /** The source's inputs, completed with defaults. */
  readonly inputs: Schema.JsonObject
  /** Unix ms. */
  readonly now: number
}

/** Targets of one source: each is a subscription at the provider. */
export const maxTargets = 50

/** What one subscription watches: one folder, one repository, one topic. */
export interface Target {
  /** Unique in its source, and stable: at most 512 characters, for example `calendar:primary`. */
  readonly key: string
}

/** A subscription as far as the adapter knows it. */
export interface Subscription {
  /** `chn_…` */
  readonly id: string
  readonly target: string
  /** The secret that only this subscription has: 43 base62 characters. */
  readonly secret: string
  /** The ids at the provider; null: none yet. At most 1,024 characters each. */
  readonly externalChannelId: string | null
  readonly externalResourceId: string | null
  /** Unix ms; null: it never expires, or it is not known yet. */
  readonly expiresAt: number | null
  /** The number of the newest message, for protocols that number them. */
  readonly lastMessageNumber: number | null
  /**
   * Whether the gateway has asked to end it. If so, a verification of the end is confirmed (WebSub), and a verification of the beginning is refused.
   */
  readonly ended?: boolean
}

/** What the provider has agreed to. */
export interface Provisioned {
  readonly externalChannelId: string | null
  readonly externalResourceId: string | null
  readonly expiresAt: number | null
  /** `verifying`: the provider is going to call back first (a handshake). `active`: it notifies from now on. */
  readonly state: "verifying" | "active"
}

/** A request that came to the callback of a subscription. The body has at most 10 MiB. */
export interface CallbackMessage {
  readonly method: string
  /** Without "?". */
  readonly query: string
  /** By lower-case name; repeated headers are joined with ", ". */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** When it arrived (Unix ms). */
  readonly receivedAt: number
}

/** What the provider gets as an answer. */
export interface CallbackReply {
  readonly status: number
  readonly contentType: string | null
  readonly body: string
}

/** One thing that happened at the provider. It becomes one request of the source. */
export interface Item {
  /**
   * Identifies it in its source and trigger, whether a notification or a poll found it: at most 1,024 characters. Every item with
   * the same id after the first is a duplicate.
   */
  readonly id: string
  /** JSON: the body of the request, with all digits as the provider sent them. At most 1 MiB. */
  readonly body: string
  /** When it happened, where the provider says so (Unix ms). */
  readonly occurredAt: number | null
}

/**
 * What a callback means.
 *
 * - `handshake`: the provider verifies the callback; `accepted` false: it does not belong to this subscription, or names another
 *   topic, and is answered with a refusal. `expiresAt`: the lease that the handshake grants. `withinCreation`: the provider verifies
 *   before it answers the request that creates the subscription, so that only its answer says whether there is one.
 * - `rejected`: not genuine (signature, token, too old); it is counted, never stored.
 * - `items`: the notification contains them. `dirty`: something has changed, and a poll finds what.
 * - `ping`: nothing to do. `lifecycle`: the provider says something about the subscription itself. `revoked` and `denied` end it,
 *   `reauthorize` asks for a renewal at once, `missed` asks for a poll.
 */
export type Notification = { readonly reply: CallbackReply } & (
  | {
      readonly kind: "handshake"
      readonly accepted: boolean
      readonly reason: string | null
      readonly expiresAt?: number | null
      readonly withinCreation?: true
    }
  | { readonly kind: "rejected"; readonly reason: string }
  | { readonly kind: "items"; readonly items: ReadonlyArray<Item>; readonly occurredAt: number | null }
  | { readonly kind: "dirty"; readonly messageNumber: number | null; readonly occurredAt: number | null }
  | { readonly kind: "ping" }
  | {
      readonly kind: "lifecycle"
      readonly what: "revoked" | "denied" | "reauthorize" | "missed"
      readonly reason: string
    }
)

/** How a provider notifies. */
export interface Adapter {
  /** `websub`, `watch`, `graph`, `eventsub` or `repo_webhook`. */
  readonly key: string
  /** How many subscriptions the inputs ask for: one for each target, at most 50. */
  readonly targets: (inputs: Schema.JsonObject) => ReadonlyArray<Target>
  /**
   * Creates a subscription. `callback`: its public URL. It may be called again for the same subscription after a crash: where the
   * protocol allows it, a repeated call has no second effect.
   */
  readonly provision: (
    context: Context,
    subscription: Subscription,
    callback: string
  ) => Effect.Effect<Provisioned, ProviderError>
  /**
   * Extends the subscription. Null: the protocol has no renewal, so a new subscription is created, and then the old one is stopped. `verifying`: the
   * subscription keeps its end until a handshake brings the new one (WebSub).
   */
  readonly renew:
    | ((context: Context, subscription: Subscription, callback: string) => Effect.Effect<Provisioned, ProviderError>)
    | null
  /** Ends the subscription. If the provider does not know it any more, it counts as ended. */
  readonly stop: (context: Context, subscription: Subscription, callback: string) => Effect.Effect<void, ProviderError>
  /**
   * Reads a message to the callback: checks that it is genuine, and returns its meaning. It gets the whole body, takes at most 1,000 items from it,
   * and its time grows no faster than the body. Work of more than a few milliseconds is resumable.
   */
  readonly receive: (
    subscription: Subscription,
    inputs: Schema.JsonObject,
    message: CallbackMessage
  ) => Notification | Resumable<Notification>
}

/** The result of one poll. */
export interface Polled {
  /** Oldest first, at most 1,000. */
  readonly items: ReadonlyArray<Item>
  /** Where the next poll continues; at most 64 KiB of JSON. */
  readonly cursor: Schema.Json
  /** There are more items now: the next poll is at once. */
  readonly more: boolean
  /** The provider no longer knew the cursor, so this is a limited listing from the beginning. */
  readonly cursorReset: boolean
}

/** How a provider's list is read. `cursor`: of the last poll; null: this is the first one, which emits nothing (it returns no items). */
export interface Poller {
  /** `feed_poll`, `json_poll`, or the name of the adapter whose API it reads. */
  readonly key: string
  readonly poll: (context: Context, cursor: Schema.Json) => Effect.Effect<Polled, ProviderError>
}
