import type { Schema } from "effect"
import type { RunReason } from "./Facts.ts"

/*
 * What the machine remembers of a channel: the column `channels.state`. Only the channel's actor writes it. All times are Unix ms.
 */

/** Failures in a row, and when the next try may be made. */
export interface Failures {
  readonly failures: number
  /** Null: at once. */
  readonly retry_at: number | null
  /** The last failure was the account's: polling would fail, too. */
  readonly of_account: boolean
}

export const noFailures: Failures = { failures: 0, retry_at: null, of_account: false }

/** The state of a subscription, in addition to its row. */
export interface SubscriptionState {
  /** The key in `bases` of the settings with which it was created. */
  readonly basis: string
  /** Since when it waits for the handshake; null: it does not. */
  readonly handshake_since: number | null
  /** A call to create it has ended without a clear answer, so it may exist at the provider. */
  readonly unsure: boolean
  /** Calls to create it that were refused. */
  readonly refusals: number
  /** It has been active. */
  readonly was_active: boolean
  /** Failures of its renewal. */
  readonly renewal: Failures
  /** A renewal that waits for a handshake: since when, and the expiry that the handshake changes. */
  readonly renewing: { readonly since: number; readonly expires_at: number | null } | null
  readonly stop: Failures
  /** It is active, but nothing arrives: a new one has to replace it. */
  readonly silent: boolean
}

/** The settings with which a subscription is created. Changed inputs need a new subscription, and the old one is stopped with the old inputs. */
export interface Basis {
  readonly provider_key: string
  readonly inputs: Schema.JsonObject
}

/** A run that has more pages. */
export interface OpenRun {
  readonly id: string
  readonly reason: RunReason
  readonly started_at: number
  readonly pages: number
  readonly items_found: number
  readonly items_new: number
}

/**
 * Polling in place of instant delivery. `polling`: until `next_restore_at`. `restoring`: subscriptions are being created.
 * `last_poll`: all are active, and one poll is left.
 */
export interface Fallback {
  readonly active: boolean
  readonly stage: "polling" | "restoring" | "last_poll"
  readonly reason: string | null
  readonly activated_at: number | null
  readonly next_restore_at: number | null
  /** The wait before the next restore; it doubles. */
  readonly restore_minutes: number
}

export const noFallback: Fallback = {
  active: false,
  stage: "polling",
  reason: null,
  activated_at: null,
  next_restore_at: null,
  restore_minutes: 0
}

/** The silence clock. */
export interface Silence {
  /** From when on silence is measured; null: it is not. */
  readonly since: number | null
  /** How much longer than usual (ms) the next check is away, because the last one found nothing. */
  readonly extended_ms: number
  /** New items that polls have found since the last notification. */
  readonly missed: number
  /** When the newest notification came. */
  readonly notified_at: number | null
}

export interface State {
  /** What the cursor belongs to: provider, trigger, account and inputs. */
  readonly basis: string | null
  readonly cursor: Schema.Json
  /** The first poll has been made. */
  readonly primed: boolean
  /** The last poll was not the last page. */
  readonly more: boolean
  readonly polls: Failures & { readonly last_at: number | null; readonly hopeless: boolean }
  readonly schedule: { readonly next_at: number | null; readonly interval_minutes: number | null }
  /** When a poll is due although nothing was notified. */
  readonly safety_at: number | null
  readonly run: OpenRun | null
  /** Failures to create subscriptions, by target. */
  readonly targets: Readonly<Record<string, Failures>>
  readonly subscriptions: Readonly<Record<string, SubscriptionState>>
  readonly bases: Readonly<Record<string, Basis>>
  readonly fallback: Fallback
  readonly silence: Silence
  /** A subscription expired, and not all targets have been active since. */
  readonly expired: boolean
  readonly last_error: string | null
  readonly retry_seen_at: number | null
  readonly account: string | null
}

export const initialState: State = {
  basis: null,
  cursor: null,
  primed: false,
  more: false,
  polls: { ...noFailures, last_at: null, hopeless: false },
  schedule: { next_at: null, interval_minutes: null },
  safety_at: null,
  run: null,
  targets: {},
  subscriptions: {},
  bases: {},
  fallback: noFallback,
  silence: { since: null, extended_ms: 0, missed: 0, notified_at: null },
  expired: false,
  last_error: null,
  retry_seen_at: null,
  account: null
}

/** The state from its column. A row of an older version, and a new row (`{}`), lack members. */
export const stateOf = (stored: unknown): State => {
  const known = stored as Partial<State>
  return {
    ...initialState,
    ...known,
    polls: { ...initialState.polls, ...known.polls },
    schedule: { ...initialState.schedule, ...known.schedule },
    fallback: { ...initialState.fallback, ...known.fallback },
    silence: { ...initialState.silence, ...known.silence }
  }
}

/** Failed provisions and renewals in a row: of the target that has most. */
export const consecutiveFailures = ({ subscriptions, targets }: State): number =>
  Math.max(
    0,
    ...Object.values(targets).map(({ failures }) => failures),
    ...Object.values(subscriptions).map(({ renewal }) => renewal.failures)
  )
