import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Plans of bulk operations that wait to be confirmed; events that a later retry has resolved; and what was stored when, for those who follow it.
 *
 * Every column may be missing to the version before. An operation of this version is on a negative shard, so that the version before does
 * not find it: it does not know all of what is in its filter.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "rate": targets a second at the most. "sample": some of the targets, for whoever looks at the plan.
  `alter table bulk_operations add column rate integer, add column confirmed boolean not null default true,
    add column planned_at timestamptz, add column sample text[] not null default '{}'`,

  // Of one that has failed or was cancelled: when a retry of it has succeeded, and which. What was retried before this version is seen to
  // by the first bulk operation that comes to it.
  `alter table events add column resolved_at timestamptz, add column resolved_by_event_id text collate "C"`,

  // A row for each commit that has stored events of a team, with their ids. Every reader that begins after a transaction has a greater "txid" sees
  // all that was committed below the oldest one under way: by it a reader goes on without leaving anything out.
  `create table event_feed (
    id text collate "C" primary key,
    team_id text collate "C" not null,
    txid xid8 not null default pg_current_xact_id(),
    event_ids text[] collate "C" not null
  ) partition by range (id)`,
  `create index event_feed_team on event_feed (team_id, txid, id)`
]
