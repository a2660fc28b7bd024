import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Item } from "@tidegate/channels/Adapter"
import type { Changes, Channel, Done, Step } from "@tidegate/channels/machine/Channel"
import { advance, isStillOf } from "@tidegate/channels/machine/Outcome"
import { newId, prefixes } from "@tidegate/model/Ids"
import { raiseAlert, resolveAlerts } from "./Alerts.ts"
import { type ChannelCommit, commitChannels } from "./ChannelCommit.ts"
import { type DefinitionOf, type HeldChannel, readChannels } from "./HeldChannel.ts"
import { dropItems, storeItems } from "./Items.ts"
import { createSubscription } from "./Subscriptions.ts"
import type { Secrets } from "../secrets/Secrets.ts"

/*
 * The work of a channel's actor in the database. A step reads everything that decides, lets the machine take in what was done, and
 * writes what follows in one transaction, if the channel has still the version that was read. So a decision is never stored that
 * was made with outdated settings, whoever has changed them meanwhile, and two owners of a channel cannot both use the same state.
 */

/**
 * A channel with a step under way becomes due again after this time (ms), in case its process ends. Until then the poller wakes
 * others.
 */
const underWayMs = 30_000

/** The result of a step. The result of a poll includes its items. */
export type Outcome =
  | Exclude<Done, { readonly did: "poll" }>
  | (Omit<Extract<Done, { readonly did: "poll" }>, "items" | "stored"> & { readonly items: ReadonlyArray<Item> })

/** What the actor goes on with. */
export interface Advanced {
  readonly next: Step
  readonly channel: Channel
  /** The channel as this step has left it. */
  readonly held: HeldChannel
}

/** A step that is decided and not stored. */
export interface Decided extends Advanced {
  readonly commit: ChannelCommit
  readonly changes: Changes
}

/** Applies the result of the last step, and decides the next one. `now`: Unix ms, after the channel was read. */
export const decide = (held: HeldChannel, done: Done | null, shard: number, now: number): Decided => {
  const { channel, version } = held
  const { after, changes, next } = advance(channel, done, {
    now,
    subscriptionId: newId(prefixes.channelSubscription, now),
    runId: newId(prefixes.sourceRun, now)
  })
  const { source_id, team_id } = channel
  const due_at = next.do === "wait" ? next.until : now + underWayMs
  const state = JSON.stringify(changes.state)
  const isSame = state === JSON.stringify(channel.state)
  return {
    next,
    channel: after,
    held: { channel: after, version: version + 1, shard, due_at },
    changes,
    commit: { source_id, team_id, version, shard, due_at, state: isSame ? null : state, changes, now }
  }
}

/** Stores the items of a poll, in the transaction that moves the cursor forward. */
const stored = Effect.fnUntraced(function* (channel: Channel, outcome: Outcome | null, now: number) {
  if (outcome?.did !== "poll") return outcome
  const { items, step } = outcome
  const { source_id, team_id } = channel
  const pair_key = channel.definition?.trigger.key
  const added =
    pair_key === undefined || !isStillOf(channel, step)
      ? 0
      : yield* storeItems({ team_id, source_id, pair_key, subscription_id: null, mode: step.mode, now }, items)
  return { ...outcome, stored: added }
})

const write = Effect.fnUntraced(function* ({ changes, commit }: Decided) {
  const sql = yield* SqlClient.SqlClient
  const { now, source_id, team_id } = commit
  const of = { team_id, source_id }
  yield* commitChannels(sql, [commit])
  if (changes.removed) yield* sql`delete from channels where source_id = ${source_id}`
  yield* Effect.forEach(changes.created, (row) => createSubscription(of, row), { discard: true })
  if (changes.dropsItems) yield* dropItems(source_id)
  yield* Effect.forEach(changes.raised, (alert) => raiseAlert({ ...alert, ...of }, now), { discard: true })
  yield* resolveAlerts({ ...of, codes: changes.resolved }, now)
})

/**
 * Applies the result of the last step, stores what follows from it, and returns the next step. Null: the channel is gone. The channel is locked, so
 * no other step can come between, and every kind of result can be stored. `ChannelJournal` uses this for steps that write more than usual.
 */
export const advanceChannel = Effect.fnUntraced(function* (
  source_id: string,
  shard: number,
  outcome: Outcome | null,
  definitionOf: DefinitionOf
): Effect.fn.Return<Advanced | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      // This is a separate statement, so that the next reads see the rows as they are under the lock, and not as they were before.
      yield* sql`select from channels where source_id = ${source_id} for update`
      const held = (yield* readChannels([source_id], definitionOf)).get(source_id)
      if (held === undefined) return null
      const { channel } = held
      // Taken under the lock, so that everything that others have stored before has an earlier time.
      const now = yield* Clock.currentTimeMillis
      const done = yield* stored(channel, outcome, now)
      const waiting = channel.waiting || (done?.did === "poll" && done.stored > 0)
      const decided = decide({ ...held, channel: { ...channel, waiting } }, done, shard, now)
      yield* write(decided)
      return decided
    })
  )
})

/** The channel is not processed before this time (Unix ms), because its last step failed in a way that would repeat. */
export const postponeChannel = Effect.fnUntraced(function* (
  source_id: string,
  until: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update channels set due_at = ${new Date(until)} where source_id = ${source_id}`
})
