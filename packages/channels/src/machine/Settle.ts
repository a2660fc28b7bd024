import type { ChannelSubscription, RunChange } from "./Channel.ts"
import type { Draft } from "./Draft.ts"
import type { RunReason } from "./Facts.ts"
import {
  denied,
  handshakeMissing,
  isTooShort,
  lost,
  notProvisioned,
  provisionFailed,
  renewalFailed,
  revoked,
  tooShort
} from "./Failing.ts"
import { initialState, noFailures, noFallback, type SubscriptionState } from "./State.ts"
import { handshakeMs, hourMs, minuteMs, renewalAt, safetyMs, stopTriedMs } from "./Times.ts"

/* What follows from the settings, the rows and the time alone. Nothing leaves the process for it. */

/** Failed first polls after which subscriptions are created although no poll has succeeded. */
const primingTries = 3
/** How often the stop of a subscription that never expires is tried, most times once an hour: for a week. */
const stopTries = 170

export const settle = (draft: Draft, freshId: string): void => {
  adopt(draft)
  followSettings(draft)
  followAccount(draft)
  followRetry(draft)
  refuseRuns(draft)
  for (const row of draft.subscriptions) followSubscription(draft, row)
  stopSuperfluous(draft)
  followNotifications(draft)
  followFallback(draft)
  resolveAlerts(draft)
  createNext(draft, freshId)
  keepBases(draft)
  finishDeleted(draft)
}

const noMemory: SubscriptionState = {
  basis: "",
  handshake_since: null,
  unsure: true,
  refusals: 0,
  was_active: true,
  renewal: noFailures,
  renewing: null,
  stop: noFailures,
  silent: false
}

/** A row that the state does not know, because the state is of an older version, is replaced by a new subscription. */
const adopt = (draft: Draft): void => {
  for (const { forgotten_at, id } of draft.subscriptions) {
    if (forgotten_at === null && draft.memory(id) === undefined) {
      draft.set({ subscriptions: { ...draft.state.subscriptions, [id]: noMemory } })
    }
  }
}

/**
 * After a change of trigger, account or inputs, the channel starts from the beginning, because the cursor belongs to the old ones. A change of the
 * mode keeps the cursor.
 */
const followSettings = (draft: Draft): void => {
  const { basis, state } = draft
  if (basis !== null && basis !== state.basis) {
    if (state.run !== null) closeRun(draft, null)
    draft.set({
      basis,
      ...(state.basis === null
        ? {}
        : {
            cursor: null,
            primed: false,
            more: false,
            run: null,
            targets: {},
            polls: initialState.polls,
            safety_at: null,
            fallback: noFallback,
            silence: { ...initialState.silence, notified_at: state.silence.notified_at },
            expired: false,
            last_error: null
          })
    })
  }
  const isFallback = draft.isInstant && draft.channel.settings?.auto_fallback === true
  if (draft.state.fallback.active && !isFallback) draft.set({ fallback: noFallback })
  const { interval_minutes } = draft.channel.settings?.schedule ?? { interval_minutes: null }
  if (draft.state.schedule.interval_minutes !== interval_minutes) {
    draft.set({ schedule: { next_at: draft.nextScheduled, interval_minutes } })
  }
}

/** Ends the run that has more pages. */
export const closeRun = (draft: Draft, error_code: string | null): void => {
  const { run } = draft.state
  if (run === null) return
  const { pages: _, ...shown } = run
  draft.saveRun({
    ...shown,
    status: error_code === null ? "succeeded" : "failed",
    error_code,
    finished_at: draft.now
  })
  draft.set({ run: null })
}

const followAccount = (draft: Draft): void => {
  const { account, definition } = draft.channel
  if (definition === null) return
  const now = definition.provider.account === null ? null : (account?.state ?? "missing")
  const before = draft.state.account
  if (now === before) return
  draft.set({ account: now })
  if (before === "active" && now !== null) {
    draft.note("account_disconnected", "error", "The provider account is not connected any more", {
      details: { state: now }
    })
  }
  if (before !== null && now === "active") {
    draft.note("account_reconnected", "info", "The provider account is connected again")
    forgetWaits(draft)
  }
}

/** The next tries are made at once. */
const forgetWaits = (draft: Draft): void => {
  draft.set({ targets: {}, polls: { ...draft.state.polls, ...noFailures, hopeless: false } })
  for (const id of Object.keys(draft.state.subscriptions)) {
    const { renewal, stop } = draft.memory(id)!
    draft.remember(id, { renewal: { ...renewal, retry_at: null }, stop: { ...stop, retry_at: null } })
  }
}

const followRetry = (draft: Draft): void => {
  const { retry_requested_at } = draft.channel
  const { fallback, retry_seen_at } = draft.state
  if (retry_requested_at === null || retry_requested_at === retry_seen_at) return
  draft.set({ retry_seen_at: retry_requested_at })
  forgetWaits(draft)
  if (fallback.active) draft.set({ fallback: { ...fallback, next_restore_at: draft.now } })
}

/** Ends runs that cannot be made. */
const refuseRuns = (draft: Draft): void => {
  if (draft.canCall) return
  const { deleted, disabled } = draft.channel
  const error_code = disabled || deleted ? "SOURCE_DISABLED" : "PROVIDER_ACCOUNT_NOT_CONNECTED"
  closeRun(draft, error_code)
  if (draft.runId !== null) draft.saveRun({ ...emptyRun(draft.runId, "manual", draft.now), error_code })
  draft.runId = null
}

/** A run that failed before it found anything. */
export const emptyRun = (id: string, reason: RunReason, now: number): RunChange => ({
  id,
  reason,
  status: "failed",
  items_found: 0,
  items_new: 0,
  error_code: null,
  started_at: now,
  finished_at: now
})

const hasEnded = ({ forgotten_at, state, stop_at, stopped_at }: ChannelSubscription): boolean =>
  forgotten_at !== null ||
  stopped_at !== null ||
  (stop_at === null && (state === "revoked" || state === "failed" || state === "stopped" || state === "expired"))

const followSubscription = (draft: Draft, row: ChannelSubscription): void => {
  const { now } = draft
  const memory = draft.memory(row.id)
  if (memory === undefined) return
  const isNeeded = row.stop_at === null && draft.isCurrent(row) && draft.targets.includes(row.target)

  // The provider has ended it by a message, or its account was revoked.
  if (hasEnded(row)) {
    draft.end(row.id, {})
    if (!isNeeded || draft.active(row.target) !== undefined) return
    if (row.state === "revoked") revoked(draft, row)
    if (row.state === "failed") notProvisioned(draft, row, denied)
    return
  }

  if (row.expires_at !== null && row.expires_at <= now) {
    draft.end(row.id, row.stop_at === null ? { state: "expired" } : {})
    if (!isNeeded || draft.active(row.target) !== undefined) return
    const message = `The subscription of ${row.target} has expired`
    draft.note("subscription_expired", "error", message, { subscription_id: row.id })
    draft.raise("channel_renewal_failed", message)
    draft.set({ expired: true, last_error: message })
    lost(draft, "subscription_expired")
    return
  }

  if (row.state === "active" && !memory.was_active) provisioned(draft, row)
  if (row.state === "verifying" && row.stop_at === null && now >= (memory.handshake_since ?? 0) + handshakeMs) {
    provisionFailed(draft, row, handshakeMissing)
  }
  const { renewing } = memory
  if (renewing !== null) {
    // Only the handshake changes the end meanwhile. It may grant a shorter lease than the one before.
    const hasArrived = row.expires_at !== renewing.expires_at
    if (hasArrived && isTooShort(draft, row.expires_at)) renewalFailed(draft, row, tooShort)
    else if (hasArrived) renewed(draft, row)
    else if (now >= renewing.since + handshakeMs) renewalFailed(draft, row, handshakeMissing)
  }
}

/** It notifies from now on. Older ones of the target are stopped only now, so that there is no gap. */
export const provisioned = (draft: Draft, row: ChannelSubscription): void => {
  const { now } = draft
  draft.remember(row.id, { was_active: true, handshake_since: null, unsure: false })
  if (!draft.isCurrent(row) || row.stop_at !== null) return
  draft.setFailures(row.target, null)
  draft.change(row.id, { last_error: null })
  const older = draft.living(row.target).filter(({ id, state }) => id !== row.id && state === "active")
  const isRenewal = older.some((one) => draft.isCurrent(one))
  for (const one of older) draft.change(one.id, { state: "superseded", stop_at: now })
  if (isRenewal) {
    draft.change(row.id, { last_renewed_at: now })
    noteRenewal(draft, row)
  } else {
    draft.note("provision_succeeded", "info", `${row.target} is subscribed`, { subscription_id: row.id })
  }
  draft.set({ safety_at: now, ...(draft.allActive ? { last_error: null } : {}) })
}

const noteRenewal = (draft: Draft, { expires_at, id }: ChannelSubscription): void => {
  const until = expires_at === null ? "" : ` until ${new Date(expires_at).toISOString()}`
  draft.note("renewal_succeeded", "info", `Renewed${until}`, { subscription_id: id })
  draft.count("renewals")
}

export const renewed = (draft: Draft, row: ChannelSubscription): void => {
  draft.remember(row.id, { renewal: noFailures, renewing: null })
  draft.change(row.id, { last_renewed_at: draft.now, renew_at: null, last_error: null })
  noteRenewal(draft, row)
  draft.set({ safety_at: draft.now, last_error: null })
}

/** Whether the account of the subscription is gone for ever, so that it cannot be stopped. */
const isOrphaned = ({ channel }: Draft, { account_id }: ChannelSubscription): boolean =>
  account_id !== null && channel.account?.id === account_id && channel.account.state === "revoked"

const stopSuperfluous = (draft: Draft): void => {
  for (const row of draft.subscriptions) {
    const memory = draft.memory(row.id)
    if (memory === undefined) continue
    const isOld = !draft.isCurrent(row)
    const isNeeded =
      draft.targets.includes(row.target) &&
      !isOrphaned(draft, row) &&
      (!isOld || (row.state === "active" && draft.active(row.target) === undefined))
    if (row.stop_at === null && !isNeeded) draft.change(row.id, { stop_at: draft.now })

    const { stop_at = null } = draft.subscription(row.id) ?? {}
    if (stop_at === null) continue
    const isGivenUp = row.expires_at === null && memory.stop.failures >= stopTries
    // The account of a deleted source may never come back, and its provider may be unknown to this version.
    const isHelpless =
      draft.channel.deleted && (draft.channel.definition === null || draft.now >= stop_at + stopTriedMs)
    if (isGivenUp || isHelpless || isOrphaned(draft, row)) {
      draft.end(row.id, endOf(draft, row))
      draft.note("stop_failed", "warning", "The subscription could not be stopped, and is left to the provider", {
        subscription_id: row.id
      })
    }
  }
}

/** The row of a subscription that is stopped now. Why it was replaced or abandoned stays visible. */
export const endOf = ({ now }: Draft, { state }: ChannelSubscription): Partial<ChannelSubscription> => ({
  stopped_at: now,
  ...(state === "superseded" || state === "failed" ? {} : { state: "stopped" })
})

const followNotifications = (draft: Draft): void => {
  const { channel, now } = draft
  const newest = Math.max(...draft.subscriptions.map(({ last_notification_at }) => last_notification_at ?? -Infinity))
  if (newest > (draft.state.silence.notified_at ?? -Infinity)) {
    const { since } = draft.state.silence
    draft.set({
      silence: { since: since === null ? null : newest, extended_ms: 0, missed: 0, notified_at: newest }
    })
    if (draft.alerts.has("channel_notification_silence")) {
      draft.resolve("channel_notification_silence")
      draft.note("silence_cleared", "info", "Notifications arrive again")
    }
  }
  const { silence } = draft.state
  const isMeasured =
    draft.canCall &&
    draft.isInstant &&
    channel.silence.enabled &&
    !draft.state.fallback.active &&
    draft.targets.length > 0 &&
    draft.allActive &&
    (silence.notified_at !== null || channel.definition?.trigger.expectsTraffic === true)
  if (isMeasured === (silence.since !== null)) return
  draft.set({ silence: { ...silence, since: isMeasured ? now : null, extended_ms: 0, missed: 0 } })
}

/** When the silence is checked; null: it is not measured. */
export const silenceCheckAt = ({ channel, state }: Draft): number | null =>
  state.silence.since === null ? null : state.silence.since + channel.silence.hours * hourMs + state.silence.extended_ms

/** A quiet poll has ended: what it or earlier polls have found should have been notified. */
export const checkedSilence = (draft: Draft): boolean => {
  const { channel, now } = draft
  const { silence } = draft.state
  if (silence.since === null) return false
  if (silence.missed === 0) {
    const half = (channel.silence.hours * hourMs) / 2
    draft.set({ silence: { ...silence, extended_ms: now + half - silence.since - channel.silence.hours * hourMs } })
    return false
  }
  const message = `${silence.missed} items were found that the provider has not notified`
  draft.note("silence_detected", "error", message, { details: { items: silence.missed } })
  draft.raise("channel_notification_silence", message)
  draft.count("silence_alerts")
  draft.set({ silence: { ...silence, since: now, extended_ms: 0, missed: 0 } })
  return true
}

const followFallback = (draft: Draft): void => {
  const { fallback } = draft.state
  if (!fallback.active) return
  const at = fallback.next_restore_at ?? 0
  if (fallback.stage === "polling" && draft.canCall && at <= draft.now) {
    draft.note("restore_attempted", "info", "Instant delivery is tried again")
    draft.set({ fallback: { ...fallback, stage: "restoring" }, targets: {} })
    for (const { id } of draft.subscriptions) {
      const memory = draft.memory(id)
      if (memory !== undefined) draft.remember(id, { renewal: { ...memory.renewal, retry_at: null } })
    }
  }
  const { stage } = draft.state.fallback
  if (draft.isHealthy) {
    if (stage !== "last_poll") draft.set({ fallback: { ...draft.state.fallback, stage: "last_poll" } })
  } else if (stage === "last_poll") {
    const next_restore_at = draft.now + fallback.restore_minutes * minuteMs
    draft.set({ fallback: { ...draft.state.fallback, stage: "polling", next_restore_at } })
  }
}

const resolveAlerts = (draft: Draft): void => {
  const allActive = !draft.isInstant || draft.allActive
  const memories = draft.subscriptions.map(({ id, stop_at }) => ({ stop_at, memory: draft.memory(id) }))
  const none = (fails: (memory: SubscriptionState) => boolean, isStopped: boolean) =>
    !memories.some(({ memory, stop_at }) => memory !== undefined && (stop_at !== null) === isStopped && fails(memory))
  if (allActive) draft.resolve("channel_provision_failed")
  if (allActive && none(({ renewal }) => renewal.failures > 0, false)) draft.resolve("channel_renewal_failed")
  if (none(({ stop }) => stop.failures > 0, true)) draft.resolve("channel_stop_failed")
  if (!draft.isInstant) draft.resolve("channel_notification_silence")
  if (allActive && draft.state.expired) draft.set({ expired: false })
}

/** Whether the target may get a new subscription now. While polling has taken over, only what still works is renewed. */
export const mayProvision = (draft: Draft, target: string): boolean => {
  const { failures, hopeless } = draft.state.polls
  // The first poll comes first: what happens from then on is found, even if it is not notified.
  if (!draft.state.primed && failures < primingTries && !hopeless) return false
  const { active, stage } = draft.state.fallback
  const current = draft.active(target)
  if (current === undefined || draft.memory(current.id)!.silent) return !active || stage === "restoring"
  return true
}

/** When the target needs a new subscription; null: it does not. */
const neededAt = (draft: Draft, target: string): number | null => {
  if (draft.coming(target) !== undefined) return null
  const current = draft.active(target)
  if (current === undefined || draft.memory(current.id)!.silent) return draft.failures(target).retry_at ?? draft.now
  if (draft.channel.definition?.trigger.adapter?.renew !== null) return null
  const due = renewalAt(current)
  return due === null ? null : Math.max(due, draft.failures(target).retry_at ?? 0)
}

/** When the next subscription has to be created; null: none. */
export const creationAt = (draft: Draft): number | null => {
  if (!draft.canCall || !draft.isInstant) return null
  const times = draft.targets.flatMap((target) => {
    const at = mayProvision(draft, target) ? neededAt(draft, target) : null
    return at === null ? [] : [at]
  })
  return times.length === 0 ? null : Math.min(...times)
}

/** Stores the next subscription before the call to the provider. So a crash leaves a row, and not a subscription that the gateway does not know. */
const createNext = (draft: Draft, id: string): void => {
  const { basis, channel, now } = draft
  const { definition, settings } = channel
  if (!draft.canCall || !draft.isInstant || basis === null || definition === null || settings === null) return
  const adapter = definition.trigger.adapter
  const target = draft.targets.find((one) => {
    const at = mayProvision(draft, one) ? neededAt(draft, one) : null
    return at !== null && at <= now
  })
  if (target === undefined || adapter === null) return
  draft.create(
    {
      id,
      adapter: adapter.key,
      definition_key: definition.key,
      account_id: definition.provider.account === null ? null : (channel.account?.id ?? null),
      target,
      external_channel_id: null,
      external_resource_id: null,
      state: "requested",
      verified_at: null,
      expires_at: null,
      last_renewed_at: null,
      renew_at: null,
      last_notification_at: null,
      last_message_number: null,
      last_error: null,
      stop_at: null,
      stopped_at: null,
      created_at: now,
      forgotten_at: null
    },
    { ...noMemory, basis, unsure: false, was_active: false }
  )
  draft.note("provision_started", "info", `${target} is being subscribed`, { subscription_id: id })
}

/** Keeps the inputs that the cursor and subscriptions belong to. */
const keepBases = (draft: Draft): void => {
  const { basis, channel, state } = draft
  const used = new Set(Object.values(state.subscriptions).map((one) => one.basis))
  const kept = Object.fromEntries(Object.entries(state.bases).filter(([key]) => used.has(key)))
  if (basis !== null && channel.settings !== null && used.has(basis)) {
    const { inputs, provider_key } = channel.settings
    kept[basis] = { provider_key, inputs }
  }
  draft.set({ bases: kept })
}

const finishDeleted = (draft: Draft): void => {
  if (!draft.channel.deleted) return
  draft.dropsItems = draft.channel.waiting
  draft.removed = Object.keys(draft.state.subscriptions).length === 0
}

/** A poll without a notification is due at this time. */
export const safetyAt = ({ now, state }: Draft): number => state.safety_at ?? (state.polls.last_at ?? now) + safetyMs
