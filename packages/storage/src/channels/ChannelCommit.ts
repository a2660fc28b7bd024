import type { SqlClient, SqlError, Statement } from "effect/sql"
import { Effect } from "effect"
import type { Changes } from "@tidegate/channels/machine/Channel"
import { Rows } from "../journal/Rows.ts"
import { channelEvents } from "./ChannelEvents.ts"
import { countStatement } from "./ChannelMetrics.ts"
import { runAgain, savedRuns } from "./SourceRuns.ts"
import { changedSubscriptions } from "./Subscriptions.ts"

/** What one step of a channel writes. */
export interface ChannelCommit {
  readonly source_id: string
  readonly team_id: string
  /** The version that the step was decided from. */
  readonly version: number
  readonly shard: number
  readonly due_at: number | null
  /** JSON; null: it stays as it is. */
  readonly state: string | null
  readonly changes: Pick<Changes, "changed" | "clears" | "counts" | "events" | "runs">
  /** Unix ms. */
  readonly now: number
}

const commits = new Rows<ChannelCommit>("g", [
  ["source_id", "text", ({ source_id }) => source_id],
  ["version", "int8", ({ version }) => BigInt(version)],
  ["shard", "int2", ({ shard }) => shard],
  ["due_at", "timestamptz", ({ due_at }) => (due_at === null ? null : Math.floor(due_at))],
  ["state", "text", ({ state }) => state],
  ["clears_dirty", "bool", ({ changes }) => changes.clears.dirty],
  ["clears_run", "bool", ({ changes }) => changes.clears.run],
  ["at", "timestamptz", ({ now }) => now]
])

const [savesRuns, savesEvents] = [
  savedRuns.insertInto("source_runs", ""),
  channelEvents.insertInto("channel_events", "")
]
const changesSubscriptions = changedSubscriptions.assignments

/**
 * Writes steps of different channels in one statement, and returns the sources of those that were written. The others are outdated:
 * nothing of them is written. Channels are locked in the order of their ids, then their subscriptions, then their counts, as by all
 * other transactions.
 */
export const commitChannels = (
  sql: SqlClient.SqlClient,
  given: ReadonlyArray<ChannelCommit>
): Effect.Effect<ReadonlySet<string>, SqlError.SqlError> => {
  const of = ({ now, source_id, team_id }: ChannelCommit) => ({ now, source_id, team_id })
  const each = <Row>(rows: (changes: ChannelCommit["changes"]) => ReadonlyArray<Row>) =>
    given.flatMap((one) => rows(one.changes).map((row) => Object.assign({}, row, of(one))))
  const subscriptions = each(({ changed }) => changed)
  const events = each(({ events: noted }) => noted)
  const runs = each(({ runs: saved }) => saved)
  const isWritten = (alias: string) => sql.literal(`${alias}.source_id = any(array(select source_id from moved))`)
  const parts: Array<Statement.Fragment> = []
  if (subscriptions.length > 0) {
    parts.push(sql`subscribed as (
      update channel_subscriptions set ${sql.literal(changesSubscriptions)}
      from ${changedSubscriptions.unnest(sql, subscriptions)}
      where channel_subscriptions.id = n.id and channel_subscriptions.source_id = n.source_id and ${isWritten("n")}
      returning 1
    )`)
  }
  if (runs.length > 0) {
    parts.push(sql`ran as (
      ${sql.literal(savesRuns)} ${savedRuns.unnest(sql, runs)} where ${isWritten("r")}
      ${sql.literal(runAgain)}
    )`)
  }
  if (events.length > 0) {
    parts.push(sql`noted as (
      ${sql.literal(savesEvents)} ${channelEvents.unnest(sql, events)} where ${isWritten("e")}
    )`)
  }
  // Reading what was subscribed makes the counts follow it.
  const condition =
    subscriptions.length > 0 ? sql`${isWritten("m")} and (select count(*) from subscribed) >= 0` : isWritten("m")
  const counts = countStatement(
    sql,
    given.map((one) => ({ ...of(one), counts: one.changes.counts })),
    condition
  )
  if (counts !== null) parts.push(sql`counted as (${counts})`)
  const written = sql<{ source_id: string }>`
    with given as materialized (
      select * from ${commits.unnest(sql, given)}
    ), held as materialized (
      select c.source_id from channels c join given g on c.source_id = g.source_id and c.version = g.version
      order by c.source_id for no key update of c
    ), moved as (
      update channels c set state = coalesce(g.state::json, c.state), shard = g.shard, version = c.version + 1, due_at = g.due_at,
        updated_at = g.at, dirty_at = case when g.clears_dirty then null else c.dirty_at end,
        run_id = case when g.clears_run then null else c.run_id end
      from given g join held h on h.source_id = g.source_id
      where c.source_id = g.source_id
      returning c.source_id
    )${parts.map((part) => sql`, ${part}`).reduce((all, part) => sql`${all}${part}`, sql.literal(""))}
    select source_id from moved`
  return Effect.map(written, (rows) => new Set(rows.map(({ source_id }) => source_id)))
}
