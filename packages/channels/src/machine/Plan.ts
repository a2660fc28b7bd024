import type { Mode, RunReason } from "./Facts.ts"
import type { ChannelSubscription, Step } from "./Channel.ts"
import type { Draft } from "./Draft.ts"
import { creationAt, mayProvision, safetyAt, silenceCheckAt } from "./Settle.ts"
import { handshakeMs, renewalAt, stopTriedMs } from "./Times.ts"

/* What comes next. Everything that is due at a time is in one list, so that the wait is never longer than it may be. */

interface Due {
  /** Null: at once. */
  readonly at: number | null
  readonly step: () => Step
}

/** The next thing to do with a channel that is settled. */
export const plan = (draft: Draft, runId: string): Step => {
  if (draft.removed) return { do: "removed" }
  const { channel, now } = draft
  if (channel.waiting && !channel.disabled && !channel.deleted) return { do: "deliver" }
  const all = [...instantly(draft), ...polls(draft, runId), ...stops(draft)]
  const due = all.find(({ at }) => at === null || at <= now)
  if (due !== undefined) return due.step()
  const times = [...all.flatMap(({ at }) => (at === null ? [] : [at])), ...timers(draft)]
  // Work that is overdue and cannot be done has to wait for a change of the channel.
  return { do: "wait", until: times.length === 0 ? null : Math.max(now + shortestMs, Math.min(...times)) }
}

/** No wait is shorter (ms), whatever is wrong. */
const shortestMs = 100

const later = (...times: ReadonlyArray<number | null>): number | null => {
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.max(...known)
}

/** Subscriptions to create and to renew. */
const instantly = (draft: Draft): ReadonlyArray<Due> => {
  if (!draft.canCall || !draft.isInstant) return []
  const isRenewable = draft.channel.definition?.trigger.adapter?.renew !== null
  return draft.targets.flatMap((target): ReadonlyArray<Due> => {
    const coming = draft.coming(target)
    if (coming !== undefined && coming.state === "requested") {
      if (!mayProvision(draft, target)) return []
      return [{ at: draft.failures(target).retry_at, step: () => ({ do: "provision", id: coming.id }) }]
    }
    const active = draft.active(target)
    if (active === undefined || !isRenewable) return []
    const memory = draft.memory(active.id)!
    const due = renewalAt(active)
    if (due === null || memory.renewing !== null) return []
    return [{ at: later(due, memory.renewal.retry_at), step: () => ({ do: "renew", id: active.id }) }]
  })
}

interface PollDue {
  readonly at: number | null
  readonly reason: RunReason
  readonly quiet?: boolean
  /** A wait after a failure does not apply. */
  readonly isAsked?: boolean
}

/** Why a poll is due, the most urgent reason first. */
const reasons = (draft: Draft): ReadonlyArray<PollDue> => {
  const { state } = draft
  // A refused account is tried now and then, because the provider may accept it again.
  if (!draft.canCall) return [{ at: null, reason: "schedule" }]
  const all: Array<PollDue> = []
  if (draft.runId !== null) all.push({ at: null, reason: "manual", isAsked: true })
  if (state.run !== null) all.push({ at: null, reason: state.run.reason })
  if (state.fallback.stage === "last_poll" && state.fallback.active) all.push({ at: null, reason: "restore" })
  if (draft.dirty) all.push({ at: null, reason: "notification" })
  if (!state.primed || state.more) all.push({ at: null, reason: "schedule" })
  if (!draft.isInstant || state.fallback.active) {
    all.push({ at: state.schedule.next_at, reason: "schedule" })
  } else {
    const silence = silenceCheckAt(draft)
    if (silence !== null) all.push({ at: silence, reason: "schedule", quiet: true })
    all.push({ at: safetyAt(draft), reason: "schedule" })
  }
  return all
}

const polls = (draft: Draft, runId: string): ReadonlyArray<Due> => {
  const { basis, channel, state } = draft
  if (!draft.mayPoll || basis === null) return []
  return reasons(draft).map(({ at, isAsked, quiet = false, reason }) => ({
    at: isAsked === true ? at : later(at, state.polls.retry_at),
    step: () => {
      // Other pages of a run belong to it, unless a manual run begins.
      const goesOn = state.run !== null && draft.runId === null
      const mode: Mode = reason === "notification" ? "instant" : "polling"
      return {
        do: "poll",
        run: draft.runId ?? (goesOn ? state.run.id : runId),
        reason,
        mode,
        quiet,
        basis,
        cursor: state.cursor,
        dirty_at: channel.dirty_at,
        run_id: draft.runId
      }
    }
  }))
}

/** Whether its account is refused at the moment. Another account than the source's is tried. */
const waitsForAccount = ({ channel }: Draft, { account_id }: ChannelSubscription): boolean =>
  account_id !== null && channel.account?.id === account_id && channel.account.state !== "active"

const stops = (draft: Draft): ReadonlyArray<Due> =>
  draft.subscriptions.flatMap((row): ReadonlyArray<Due> => {
    const memory = draft.memory(row.id)
    if (row.stop_at === null || memory === undefined || waitsForAccount(draft, row)) return []
    return [{ at: later(row.stop_at, memory.stop.retry_at), step: () => ({ do: "stop", id: row.id }) }]
  })

/** When something changes by itself. */
const timers = (draft: Draft): ReadonlyArray<number> => {
  const { fallback } = draft.state
  const times: Array<number | null> = [creationAt(draft)]
  if (fallback.active && fallback.stage === "polling" && draft.canCall) times.push(fallback.next_restore_at)
  for (const row of draft.subscriptions) {
    const memory = draft.memory(row.id)
    if (memory === undefined) continue
    times.push(row.expires_at)
    if (draft.channel.deleted && row.stop_at !== null) times.push(row.stop_at + stopTriedMs)
    if (row.state === "verifying" && row.stop_at === null) times.push((memory.handshake_since ?? 0) + handshakeMs)
    if (memory.renewing !== null) times.push(memory.renewing.since + handshakeMs)
  }
  return times.filter((time) => time !== null)
}
