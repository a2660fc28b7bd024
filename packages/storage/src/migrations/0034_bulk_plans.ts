import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Plans of bulk operations that wait for confirmation, events that a later retry has resolved, and a feed of stored events.
 *
 * The previous version does not write these columns. An operation of this version has a negative shard, so that the previous version does
 * not find it, because that version does not know all parts of its filter.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "rate": maximum number of targets per second. "sample": some of the targets, to show in the plan.
  `alter table bulk_operations add column rate integer, add column confirmed boolean not null default true,
    add column planned_at timestamptz, add column sample text[] not null default '{}'`,

  // For a failed or cancelled event: when a retry of it succeeded, and the id of that retry. For events that were retried before this
  // version, the first bulk operation that reads them sets these columns.
  `alter table events add column resolved_at timestamptz, add column resolved_by_event_id text collate "C"`,

  // One row for each commit that stored events of a team, with their ids. All transactions with a "txid" below the oldest one under way have
  // ended. A reader reads up to that limit and continues there, so it misses nothing.
  `create table event_feed (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    txid xid8 not null default pg_current_xact_id(),
    event_ids text[] collate "C" not null
  ) partition by range (id)`,
  `create index event_feed_team on event_feed (team_id, txid, id)`
]
