import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Ordered delivery by ordering key. Rows of connections without ordering do not change. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "lines" stays when the ordering goes: what was put in line by then has still to be looked for there. It is 'actor' once the
  // connection was ordered with slow rules: a request that comes later must not pass one that waits for them, whatever the rules
  // are by then.
  `alter table connections add column ordering jsonb, add column lines text check (lines in ('door', 'actor'))`,

  // A row in line has a "place" in that of its "ordering_key". Its first attempt comes when it is the first there, and not before
  // "ready_at"; "due_at" is then so late that nobody finds it by the clock, and the first one of a line is found however many wait
  // behind it. When it has failed its retry is due by the clock again, with its place ("ready_at" is null) or without ("place" is
  // null too).
  `create sequence deliveries_place`,
  `alter table deliveries add column ordering_key text collate "C", add column place bigint, add column ready_at timestamptz`,
  `create index deliveries_lines on deliveries (shard, destination_id, connection_id, ordering_key, place)
    where place is not null`,

  // Each routing job of an ordered connection has a "place", also without an ordering key: jobs are processed in that order.
  `alter table pending_routes add column ordering_key text collate "C", add column place bigint`,
  `create index pending_routes_places on pending_routes (connection_id, place) where place is not null`,

  // For the retries of an event, which have the same ordering key.
  `alter table events add column ordering_key text collate "C"`
]
