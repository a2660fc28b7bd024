import type { Channel, Changes, Done, Given, Poll, Step } from "./Channel.ts"
import { Draft, failedAgain } from "./Draft.ts"
import {
  activateFallback,
  isTooShort,
  provisionFailed,
  renewalFailed,
  revoked,
  stopFailed,
  tooShort
} from "./Failing.ts"
import { plan } from "./Plan.ts"
import { checkedSilence, closeRun, emptyRun, endOf, renewed, settle } from "./Settle.ts"
import { noFailures, noFallback } from "./State.ts"
import { minuteMs, safetyMs } from "./Times.ts"

/** Pages of one run. A list that never ends does not keep the channel busy. */
const maxPages = 100
/** An item that is younger (ms) may still be notified. */
const onItsWayMs = 2 * minuteMs

export interface Advanced {
  readonly changes: Changes
  readonly next: Step
  /** The channel with the changes. */
  readonly after: Channel
}

/**
 * The next state of a channel. It applies the result of the last step, decides what follows from settings and time, and plans the next step.
 * `channel` must be read again after the step, under its lock: settings, callbacks and other processes may have changed it.
 */
export const advance = (channel: Channel, done: Done | null, given: Given): Advanced => {
  const draft = new Draft(channel, given.now)
  if (done !== null) takeIn(draft, done)
  settle(draft, given.subscriptionId)
  return { changes: draft.changes, next: plan(draft, given.runId), after: draft.after }
}

/** Whether the items of a poll still belong to the channel. Its trigger, account or inputs may have changed meanwhile. */
export const isStillOf = (channel: Channel, { basis }: Poll): boolean => new Draft(channel, 0).basis === basis

const takeIn = (draft: Draft, done: Done): void => {
  switch (done.did) {
    case "provision":
      return provisionEnded(draft, done)
    case "renew":
      return renewEnded(draft, done)
    case "stop":
      return stopEnded(draft, done.id)
    case "failed":
      return callFailed(draft, done)
    case "poll":
      return pollEnded(draft, done)
    case "poll failed":
      return pollFailed(draft, done)
  }
}

type Of<Did extends Done["did"]> = Extract<Done, { readonly did: Did }>

const provisionEnded = (draft: Draft, { agreed, id }: Of<"provision">): void => {
  draft.count("provision_attempts")
  const row = draft.subscription(id)
  if (row === undefined) return
  if (isTooShort(draft, agreed.expiresAt) && row.forgotten_at === null) return provisionFailed(draft, row, tooShort)
  // It ended while the provider was being called: it exists there now, and has to be stopped.
  const isOver = row.forgotten_at !== null || row.stopped_at !== null
  // Its handshake may have arrived before the answer.
  const isActive = row.state === "active" || agreed.state === "active"
  draft.change(id, {
    external_channel_id: agreed.externalChannelId ?? row.external_channel_id,
    external_resource_id: agreed.externalResourceId ?? row.external_resource_id,
    expires_at: agreed.expiresAt ?? row.expires_at,
    ...(isOver
      ? { state: "failed", stop_at: draft.now, stopped_at: null, forgotten_at: null }
      : {
          state: isActive ? "active" : "verifying",
          verified_at: isActive ? (row.verified_at ?? draft.now) : null
        })
  })
  draft.remember(id, { handshake_since: isActive ? null : draft.now, unsure: !isActive })
}

const renewEnded = (draft: Draft, { agreed, expires_at, id }: Of<"renew">): void => {
  const row = draft.subscription(id)
  if (row === undefined || row.forgotten_at !== null) return
  draft.change(id, {
    external_channel_id: agreed.externalChannelId ?? row.external_channel_id,
    external_resource_id: agreed.externalResourceId ?? row.external_resource_id,
    // While a handshake is awaited, only the handshake changes the end, and it may have done so before the answer.
    expires_at: agreed.state === "verifying" ? row.expires_at : (agreed.expiresAt ?? row.expires_at)
  })
  if (row.stop_at !== null) return
  // The handshake may have arrived before the answer: then `settle` finds the other end.
  if (agreed.state === "verifying") draft.remember(id, { renewing: { since: draft.now, expires_at } })
  else if (isTooShort(draft, agreed.expiresAt)) renewalFailed(draft, row, tooShort)
  else renewed(draft, draft.subscription(id)!)
}

const stopEnded = (draft: Draft, id: string): void => {
  draft.count("stops")
  const row = draft.subscription(id)
  if (row === undefined || row.forgotten_at !== null) return
  draft.end(id, endOf(draft, row))
  draft.note("stopped", "info", `The subscription of ${row.target} is stopped`, { subscription_id: id })
}

const callFailed = (draft: Draft, { error, id, what }: Of<"failed">): void => {
  const row = draft.subscription(id)
  if (what === "provision") draft.count("provision_attempts")
  if (row === undefined || row.forgotten_at !== null) return
  const isGone = error.code === "PROVIDER_NOT_FOUND"
  switch (what) {
    case "provision":
      // Its handshake has arrived, so only the answer was lost.
      if (row.state === "active") return
      return provisionFailed(draft, row, error)
    case "renew":
      if (row.stop_at !== null) return
      if (!isGone) return renewalFailed(draft, row, error)
      draft.count("renewal_failures")
      draft.end(id, { state: "revoked", last_error: error.message })
      draft.note("subscription_revoked", "error", "The provider does not know the subscription any more", {
        error_code: error.code,
        subscription_id: id
      })
      return revoked(draft, row)
    case "stop":
      return isGone ? stopEnded(draft, id) : stopFailed(draft, row, error)
  }
}

const pollEnded = (draft: Draft, done: Of<"poll">): void => {
  const { cursor, items, step, stored } = done
  const { now, state } = draft
  draft.count("polls")
  draft.count("items_fetched", items.length)
  if (draft.basis !== step.basis) return
  // Another process has polled from the same cursor. What was found is stored; the cursor is where that process has left it.
  const isOvertaken = state.basis !== step.basis || !equal(state.cursor, step.cursor)
  if (!isOvertaken) draft.set({ cursor, primed: true })
  if (done.cursorReset) {
    draft.note("cursor_reset", "warning", "The provider did not know the position any more; its list was read anew", {
      details: { items: items.length }
    })
  }

  const run = state.run?.id === step.run ? state.run : null
  if (run === null) closeRun(draft, null)
  const pages = (run?.pages ?? 0) + 1
  const found = {
    id: step.run,
    reason: run?.reason ?? step.reason,
    started_at: run?.started_at ?? now,
    items_found: (run?.items_found ?? 0) + items.length,
    items_new: (run?.items_new ?? 0) + stored
  }
  draft.set({
    run: { ...found, pages },
    more: isOvertaken ? state.more : done.more,
    polls: { ...noFailures, last_at: now, hopeless: false }
  })
  countMissed(draft, done)
  if (done.more && pages < maxPages) {
    draft.saveRun({ ...found, status: "running", error_code: null, finished_at: null })
    return
  }
  // A list that is too long is read on a little later.
  if (done.more) draft.set({ polls: { ...draft.state.polls, retry_at: now + minuteMs } })
  closeRun(draft, null)
  draft.set({ schedule: { ...draft.state.schedule, next_at: draft.nextScheduled } })
  if (step.run_id !== null && step.run_id === draft.runId) draft.runId = null
  if (done.more) return
  // A notification that arrived during the poll may be about something later.
  if (step.dirty_at === draft.channel.dirty_at) draft.dirty = false
  draft.set({ safety_at: now + safetyMs })
  if (step.quiet && checkedSilence(draft)) {
    activateFallback(draft, "notification_silence")
    // The restore replaces them. Without a fall-back the silence is only reported.
    if (draft.state.fallback.active) for (const { id } of draft.subscriptions) draft.remember(id, { silent: true })
  }
  if (draft.state.fallback.stage === "last_poll" && step.reason === "restore") restored(draft)
}

const restored = (draft: Draft): void => {
  draft.set({ fallback: noFallback, targets: {} })
  draft.note("fallback_restored", "info", "Instant delivery works again")
  draft.count("fallback_restores")
}

/** New items that no notification has announced. */
const countMissed = (draft: Draft, { items, step, stored }: Of<"poll">): void => {
  if (!draft.isInstant || draft.state.fallback.active || step.reason === "notification") return
  const old = items.filter(({ occurredAt }) => occurredAt === null || occurredAt < draft.now - onItsWayMs).length
  const { silence } = draft.state
  draft.set({ silence: { ...silence, missed: silence.missed + Math.min(stored, old) } })
}

const pollFailed = (draft: Draft, { error, step }: Of<"poll failed">): void => {
  const { now, state } = draft
  draft.count("polls")
  draft.count("poll_failures")
  if (draft.basis !== step.basis) return
  draft.set({
    last_error: error.message,
    polls: { ...state.polls, ...failedAgain(state.polls, error, now), hopeless: error.permanent }
  })
  if (state.run !== null) closeRun(draft, state.run.id === step.run ? error.code : null)
  if (state.run?.id !== step.run) {
    draft.saveRun({ ...emptyRun(step.run, step.reason, now), error_code: error.code })
  }
  if (step.run_id !== null && step.run_id === draft.runId) draft.runId = null
}

/** Cursors are JSON that was stored and read, so that equal ones have the same text. */
const equal = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right)
