import type { ChannelSubscription, Failure } from "./Channel.ts"
import { type Draft, failedAgain } from "./Draft.ts"
import { noFailures } from "./State.ts"
import { hourMs, minuteMs, renewalAt } from "./Times.ts"

/* What failures lead to: the next try, alerts, and polling in place of instant delivery. */

/** Failures in a row after which an alert opens. */
const alertAfter = 3
/** After so many refusals of the same subscription, another one is created. */
const maxRefusals = 3
/** A renewal is not tried more often than this (ms), however close the end is. */
const soonestMs = 5_000
/** The wait after a subscription that was ended soon after it began (ms). */
const earlyMs = 10 * minuteMs
/** The longest wait between two restores. */
const longestRestoreMinutes = 24 * 60

/**
 * Polling takes over. It does not for an account that is not connected: polling would fail, too.
 */
export const activateFallback = (draft: Draft, reason: string): void => {
  const { settings } = draft.channel
  if (settings === null || !settings.auto_fallback || !draft.isInstant || !draft.canCall) return
  if (draft.state.fallback.active) return
  const minutes = settings.restore_after_minutes
  draft.set({
    fallback: {
      active: true,
      stage: "polling",
      reason,
      activated_at: draft.now,
      next_restore_at: draft.now + minutes * minuteMs,
      restore_minutes: minutes
    },
    schedule: { ...draft.state.schedule, next_at: draft.now }
  })
  draft.note("fallback_activated", "warning", "Polling has taken over from instant delivery", { details: { reason } })
  draft.count("fallback_activations")
}

/** The channel keeps polling, and waits twice as long before the next restore. */
const restoreFailed = (draft: Draft): void => {
  const { fallback } = draft.state
  const minutes = Math.min(fallback.restore_minutes * 2, longestRestoreMinutes)
  draft.set({
    fallback: {
      ...fallback,
      stage: "polling",
      restore_minutes: minutes,
      next_restore_at: draft.now + minutes * minuteMs
    }
  })
}

const tooMany = (draft: Draft, { failures, of_account }: { readonly failures: number; readonly of_account: boolean }) =>
  !of_account && failures >= (draft.channel.settings?.max_failures ?? Infinity)

/** An alert opens only in the second half of the time between the renewal and the end: earlier there is time to try again. */
export const renewalFailed = (draft: Draft, row: ChannelSubscription, error: Failure): void => {
  const renewal = failedAgain(draft.memory(row.id)?.renewal ?? noFailures, error, draft.now)
  const end = row.expires_at ?? Infinity
  // A later try would be too late, unless the provider itself asks for it.
  const latest = draft.now + Math.max(soonestMs, (end - draft.now) / 4)
  const retry_at = error.retryAfterMs === null ? Math.min(renewal.retry_at ?? latest, latest) : renewal.retry_at
  draft.remember(row.id, { renewal: { ...renewal, retry_at }, renewing: null })
  draft.change(row.id, { last_error: error.message })
  draft.set({ last_error: error.message })
  draft.count("renewal_failures")
  draft.note("renewal_failed", "warning", error.message, { error_code: error.code, subscription_id: row.id })
  const due = renewalAt(row)
  // Until it is renewed, the provider may send nothing.
  const isAsked = row.renew_at !== null && renewal.failures >= alertAfter
  if (isAsked || (due !== null && draft.now >= (due + end) / 2)) draft.raise("channel_renewal_failed", error.message)
  if (draft.state.fallback.stage === "restoring") restoreFailed(draft)
  else if (tooMany(draft, renewal)) activateFallback(draft, "renewal_failed")
}

/**
 * A subscription could not be created. The same row is tried again, unless it may exist at the provider, which is why it could be
 * refused: an answer was lost, or a process ended before it stored the answer. Then it is stopped, and another one is created.
 */
export const provisionFailed = (draft: Draft, row: ChannelSubscription, error: Failure): void => {
  const isAnswered = error.status !== null && error.status < 500
  const { refusals = 0, unsure = false } = draft.memory(row.id) ?? {}
  const isAbandoned = isAnswered && (unsure || refusals + 1 >= maxRefusals)
  draft.remember(row.id, { handshake_since: null, unsure: !isAnswered, refusals: refusals + 1 })
  draft.change(row.id, {
    last_error: error.message,
    // The next call creates another one at the provider. If its answer is lost, the row must not keep the id of this subscription: without an id, the
    // stop finds the new subscription by its callback.
    ...(isAbandoned
      ? { state: "failed", stop_at: row.stop_at ?? draft.now }
      : { state: "requested", external_channel_id: null })
  })
  draft.note("provision_failed", "error", error.message, { error_code: error.code, subscription_id: row.id })
  notProvisioned(draft, row, error)
}

/** No subscription could be created for a target. Writes the event. */
export const notProvisioned = (draft: Draft, row: ChannelSubscription, error: Failure): void => {
  const failures = failedAgain(draft.failures(row.target), error, draft.now)
  draft.setFailures(row.target, failures)
  draft.set({ last_error: error.message })
  draft.count("provision_failures")

  const replaced = draft.active(row.target)
  if (replaced !== undefined && draft.memory(replaced.id)?.silent === false) {
    renewalFailed(draft, replaced, error)
    const { retry_at } = draft.memory(replaced.id)!.renewal
    return draft.setFailures(row.target, { ...failures, retry_at })
  }
  if (failures.failures >= alertAfter || error.permanent) draft.raise("channel_provision_failed", error.message)
  if (draft.state.fallback.stage === "restoring") restoreFailed(draft)
  else if (tooMany(draft, failures)) activateFallback(draft, "provision_failed")
}

export const stopFailed = (draft: Draft, row: ChannelSubscription, error: Failure): void => {
  const stop = failedAgain(draft.memory(row.id)?.stop ?? noFailures, error, draft.now)
  draft.remember(row.id, { stop })
  draft.change(row.id, { last_error: error.message })
  draft.count("stop_failures")
  draft.note("stop_failed", "warning", error.message, { error_code: error.code, subscription_id: row.id })
  if (stop.failures >= alertAfter) draft.raise("channel_stop_failed", error.message)
}

/** A subscription that is still needed has ended. A poll finds the items since then. */
export const lost = (draft: Draft, reason: "subscription_expired" | "subscription_revoked"): void => {
  draft.set({ safety_at: draft.now })
  activateFallback(draft, reason)
}

/** The provider has ended a subscription. One that it ends soon after it began is not created again at once. */
export const revoked = (draft: Draft, row: ChannelSubscription): void => {
  const isEarly = draft.now - (row.verified_at ?? row.created_at) < hourMs
  const retry_at = draft.now + (isEarly ? earlyMs : soonestMs)
  draft.setFailures(row.target, { failures: 1, retry_at, of_account: false })
  lost(draft, "subscription_revoked")
}

/** A handshake that has not arrived. Nobody knows whether the provider got the request. */
export const handshakeMissing: Failure = {
  code: "HANDSHAKE_TIMEOUT",
  message: "The provider has not verified the callback within 60 seconds",
  permanent: false,
  status: null,
  retryAfterMs: null
}

/** The shortest life (ms) of a subscription. */
const shortestLifeMs = 5_000

export const isTooShort = ({ now }: Draft, expiresAt: number | null): boolean =>
  expiresAt !== null && expiresAt < now + shortestLifeMs

/** A subscription that ends at once is useless, and would be created again without a pause. */
export const tooShort: Failure = {
  code: "PROVIDER_ANSWER_INVALID",
  message: "The provider has granted a subscription that has ended already",
  permanent: false,
  status: null,
  retryAfterMs: null
}

/** The provider has denied the subscription by a message, whose event the callback has written. */
export const denied: Failure = {
  code: "SUBSCRIPTION_DENIED",
  message: "The provider has denied the subscription",
  permanent: true,
  status: null,
  retryAfterMs: hourMs
}
