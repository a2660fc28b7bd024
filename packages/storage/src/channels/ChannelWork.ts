import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Item } from "@tidegate/channels/Adapter"
import type { AlertCode } from "@tidegate/channels/machine/Facts"
import type { Changes, Channel, Done, Step } from "@tidegate/channels/machine/Channel"
import { advance, isStillOf } from "@tidegate/channels/machine/Outcome"
import { stateOf } from "@tidegate/channels/machine/State"
import type { Definition } from "@tidegate/channels/SourceProviders"
import { newId, prefixes } from "@tidegate/model/Ids"
import { accountStateOf, type ProviderSettings } from "@tidegate/model/ProviderSource"
import { raiseAlert, resolveAlerts } from "./Alerts.ts"
import { channelEvent } from "./ChannelEvents.ts"
import { count } from "./ChannelMetrics.ts"
import { dropItems, storeItems } from "./Items.ts"
import { saveRun } from "./SourceRuns.ts"
import { changeSubscriptions, createSubscription, heldSubscriptions } from "./Subscriptions.ts"
import type { Secrets } from "../secrets/Secrets.ts"

/*
 * The work of a channel's actor in the database: one transaction for each step. It locks the channel, reads everything that decides,
 * lets the machine take in what was done, and writes what follows. So a decision is never made with outdated settings, whoever has
 * changed them during a call, and two owners of a channel cannot both use the same state.
 */

/** The silence that is reported before a team has settings of its own. */
const defaultSilenceHours = 24
/**
 * A channel with a step under way becomes due again after this time (ms), in case its process ends. Until then the poller wakes
 * others.
 */
const underWayMs = 30_000

interface Row {
  readonly team_id: string
  readonly created_at: Date
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
  readonly settings: ProviderSettings | null
  readonly account_id: string | null
  readonly account_disabled_at: Date | null
  readonly account_revoked_at: Date | null
  readonly account_failed_at: Date | null
  readonly account_connection: string
  readonly silence_enabled: boolean | null
  readonly silence_hours: number | null
  readonly state: unknown
  readonly dirty_at: Date | null
  readonly run_id: string | null
  readonly retry_requested_at: Date | null
  readonly alerts: ReadonlyArray<AlertCode>
  readonly waiting: boolean
}

/** Finds the definition of a provider source. */
export type DefinitionOf = (provider_key: string, definition_key: string) => Definition | undefined

/** Locks the channel, and reads it; null: it is gone. */
const held = Effect.fnUntraced(function* (
  source_id: string,
  definitionOf: DefinitionOf
): Effect.fn.Return<Channel | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // A statement of its own: what is read next is as it is with the lock, and not as it was before.
  yield* sql`select from channels where source_id = ${source_id} for update`
  const [row] = yield* sql<Row>`
    select c.team_id, s.created_at, s.disabled_at, s.deleted_at, s.config -> 'provider' as settings,
      a.id as account_id, a.disabled_at as account_disabled_at, a.revoked_at as account_revoked_at,
      a.failed_at as account_failed_at, a.connection as account_connection,
      t.silence_alert_enabled as silence_enabled, t.silence_alert_hours as silence_hours,
      c.state, c.dirty_at, c.run_id, c.retry_requested_at,
      array(select code from channel_alerts where source_id = c.source_id and status = 'active') as alerts,
      exists (select from channel_items where source_id = c.source_id and body is not null) as waiting
    from channels c
      join sources s on s.id = c.source_id
      left join provider_accounts a on a.id = s.config -> 'provider' ->> 'provider_account_id' and a.team_id = c.team_id
        and a.provider_key = s.config -> 'provider' ->> 'provider_key'
      left join channel_settings t on t.team_id = c.team_id
    where c.source_id = ${source_id}`
  if (row === undefined) return null
  const state = stateOf(row.state)
  const { settings } = row
  return {
    source_id,
    team_id: row.team_id,
    created_at: row.created_at.getTime(),
    disabled: row.disabled_at !== null,
    deleted: row.deleted_at !== null,
    settings,
    definition: settings === null ? null : (definitionOf(settings.provider_key, settings.definition_key) ?? null),
    account:
      row.account_id === null
        ? null
        : {
            id: row.account_id,
            state: accountStateOf({
              disabled_at: row.account_disabled_at,
              revoked_at: row.account_revoked_at,
              failed_at: row.account_failed_at,
              connection: row.account_connection
            })
          },
    silence: { enabled: row.silence_enabled ?? true, hours: row.silence_hours ?? defaultSilenceHours },
    state,
    dirty_at: row.dirty_at?.getTime() ?? null,
    run_id: row.run_id,
    retry_requested_at: row.retry_requested_at?.getTime() ?? null,
    subscriptions: yield* heldSubscriptions(source_id, Object.keys(state.subscriptions)),
    alerts: row.alerts,
    waiting: row.waiting
  }
})

/** What a step has found or done; a poll comes with its items. */
export type Outcome =
  | Exclude<Done, { readonly did: "poll" }>
  | (Omit<Extract<Done, { readonly did: "poll" }>, "items" | "stored"> & { readonly items: ReadonlyArray<Item> })

/** Stores what a poll has found, in the transaction that moves the cursor on. */
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

const write = Effect.fnUntraced(function* (channel: Channel, changes: Changes, next: Step, shard: number, now: number) {
  const sql = yield* SqlClient.SqlClient
  const { source_id, team_id } = channel
  const of = { team_id, source_id }
  if (changes.removed) yield* sql`delete from channels where source_id = ${source_id}`
  else {
    const due = next.do === "wait" ? next.until : now + underWayMs
    const { clears } = changes
    yield* sql`
      update channels set state = ${JSON.stringify(changes.state)}::json, shard = ${shard}, version = version + 1,
        due_at = ${due === null ? null : new Date(due)}, updated_at = ${new Date(now)},
        dirty_at = ${clears.dirty || channel.dirty_at === null ? null : new Date(channel.dirty_at)},
        run_id = ${clears.run ? null : channel.run_id}
      where source_id = ${source_id}`
  }
  yield* Effect.forEach(changes.created, (row) => createSubscription(of, row), { discard: true })
  yield* changeSubscriptions(changes.changed)
  if (changes.dropsItems) yield* dropItems(source_id)
  yield* Effect.forEach(changes.runs, (run) => saveRun({ ...run, ...of }), { discard: true })
  yield* Effect.forEach(changes.events, (event) => channelEvent({ ...event, ...of }, now), { discard: true })
  yield* Effect.forEach(changes.raised, (alert) => raiseAlert({ ...alert, ...of }, now), { discard: true })
  yield* resolveAlerts({ ...of, codes: changes.resolved }, now)
  yield* count(team_id, source_id, changes.counts, now)
})

/** What the actor goes on with. */
export interface Advanced {
  readonly next: Step
  readonly channel: Channel
}

/** Takes in what was done, stores what follows from it, and returns the next step; null: the channel is gone. */
export const advanceChannel = Effect.fnUntraced(function* (
  source_id: string,
  shard: number,
  outcome: Outcome | null,
  definitionOf: DefinitionOf
): Effect.fn.Return<Advanced | null, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const channel = yield* held(source_id, definitionOf)
      if (channel === null) return null
      // With the lock: what others have stored before has an earlier time.
      const now = yield* Clock.currentTimeMillis
      const done = yield* stored(channel, outcome, now)
      const waiting = channel.waiting || (done?.did === "poll" && done.stored > 0)
      const { after, changes, next } = advance({ ...channel, waiting }, done, {
        now,
        subscriptionId: newId(prefixes.channelSubscription, now),
        runId: newId(prefixes.sourceRun, now)
      })
      yield* write(channel, changes, next, shard, now)
      return { next, channel: after }
    })
  )
})

/** The channel is not looked at before this time (Unix ms): working on it has failed in a way that would repeat. */
export const postponeChannel = Effect.fnUntraced(function* (
  source_id: string,
  until: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update channels set due_at = ${new Date(until)} where source_id = ${source_id}`
})
