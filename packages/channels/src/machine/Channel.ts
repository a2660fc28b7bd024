import type { Schema } from "effect"
import type { AccountState, ProviderSettings } from "@tidegate/model/ProviderSource"
import type { Item, ProviderError, ProviderErrorCode, Provisioned } from "../Adapter.ts"
import type { Definition } from "../SourceProviders.ts"
import type { AlertCode, Counts, EventKind, Mode, RunReason, Severity } from "./Facts.ts"
import type { State } from "./State.ts"
import type { Life } from "./Times.ts"

/* What the machine decides from, and what it decides. All times are Unix ms. */

export type SubscriptionStage =
  | "requested"
  | "verifying"
  | "active"
  | "superseded"
  | "expired"
  | "stopped"
  | "failed"
  | "revoked"

/** A row of `channel_subscriptions`, without its secrets. */
export interface ChannelSubscription extends Life {
  readonly adapter: string
  readonly definition_key: string
  readonly account_id: string | null
  readonly target: string
  readonly external_channel_id: string | null
  readonly external_resource_id: string | null
  readonly state: SubscriptionStage
  readonly last_notification_at: number | null
  readonly last_message_number: number | null
  readonly last_error: string | null
  /** From when on it is to be stopped. */
  readonly stop_at: number | null
  readonly stopped_at: number | null
  /** When its row is deleted; null while it lives. */
  readonly forgotten_at: number | null
}

/** A channel and everything that decides about it, read at one moment. */
export interface Channel {
  readonly source_id: string
  readonly team_id: string
  /** When the source was created: the grid of its schedule begins there. */
  readonly created_at: number
  readonly disabled: boolean
  readonly deleted: boolean
  /** Null: the source is not, or no more, of a known provider. */
  readonly settings: ProviderSettings | null
  readonly definition: Definition | null
  readonly account: { readonly id: string; readonly state: AccountState } | null
  /** The team's settings. */
  readonly silence: { readonly enabled: boolean; readonly hours: number }
  readonly state: State
  readonly dirty_at: number | null
  readonly run_id: string | null
  readonly retry_requested_at: number | null
  /** The live subscriptions, and those that have ended since the machine last ran. */
  readonly subscriptions: ReadonlyArray<ChannelSubscription>
  readonly alerts: ReadonlyArray<AlertCode>
  /** Items wait to become requests. */
  readonly waiting: boolean
}

/** What to do next. Everything but `wait` leaves the machine, and its result is given to `advance`. */
export type Step =
  | { readonly do: "deliver" }
  | { readonly do: "provision" | "renew" | "stop"; readonly id: string }
  | Poll
  | { readonly do: "removed" }
  /** `until`: null: until the channel changes. */
  | { readonly do: "wait"; readonly until: number | null }

export interface Poll {
  readonly do: "poll"
  readonly run: string
  readonly reason: RunReason
  /** Items count as notified, or as found by a poll. */
  readonly mode: Mode
  /** The poll checks whether notifications were missed. */
  readonly quiet: boolean
  readonly basis: string
  readonly cursor: Schema.Json
  readonly dirty_at: number | null
  readonly run_id: string | null
}

/** Why something failed: a `ProviderError`, or a handshake that did not arrive. */
export type Failure = Pick<ProviderError, "message" | "permanent" | "status" | "retryAfterMs"> & {
  readonly code: ProviderErrorCode | "HANDSHAKE_TIMEOUT"
}

/** What was done, and how it ended. */
export type Done =
  | { readonly did: "provision"; readonly id: string; readonly agreed: Provisioned }
  /** `expires_at`: as it was before the call. */
  | { readonly did: "renew"; readonly id: string; readonly expires_at: number | null; readonly agreed: Provisioned }
  | { readonly did: "stop"; readonly id: string }
  | {
      readonly did: "failed"
      readonly id: string
      readonly what: "provision" | "renew" | "stop"
      readonly error: Failure
    }
  | {
      readonly did: "poll"
      readonly step: Poll
      readonly items: ReadonlyArray<Pick<Item, "occurredAt">>
      /** How many of the items were new. */
      readonly stored: number
      readonly cursor: Schema.Json
      readonly more: boolean
      readonly cursorReset: boolean
    }
  | { readonly did: "poll failed"; readonly step: Poll; readonly error: Failure }

/** An event of a channel, without what every one has. */
export interface Noted {
  readonly kind: EventKind
  readonly severity: Severity
  readonly message: string
  readonly error_code: string | null
  readonly subscription_id: string | null
  readonly details: Schema.JsonObject
}

export interface RunChange {
  readonly id: string
  readonly reason: RunReason
  readonly status: "running" | "succeeded" | "failed"
  readonly items_found: number
  readonly items_new: number
  readonly error_code: string | null
  readonly started_at: number
  readonly finished_at: number | null
}

/** What is written in one transaction. */
export interface Changes {
  readonly state: State
  /** New rows; their token and secret are made where they are stored. */
  readonly created: ReadonlyArray<ChannelSubscription>
  readonly changed: ReadonlyArray<ChannelSubscription>
  readonly events: ReadonlyArray<Noted>
  readonly raised: ReadonlyArray<{ readonly code: AlertCode; readonly message: string }>
  readonly resolved: ReadonlyArray<AlertCode>
  readonly counts: Counts
  readonly runs: ReadonlyArray<RunChange>
  /** The notification and the manual run that a poll has answered. */
  readonly clears: { readonly dirty: boolean; readonly run: boolean }
  /** The items that wait are dropped: the source is deleted. */
  readonly dropsItems: boolean
  /** The channel has nothing left: its row is deleted. */
  readonly removed: boolean
}

/** The time, and new ids for what may be created. */
export interface Given {
  readonly now: number
  readonly subscriptionId: string
  readonly runId: string
}
