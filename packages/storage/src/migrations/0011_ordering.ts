import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Ordered delivery by ordering key. Rows of connections without ordering do not change. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // "lines" stays when "ordering" is removed, because rows that were ordered before still have to be found by their ordering key.
  // It is 'door' if ingress routes in order. It is 'actor' once the connection was ordered with slow rules: a later request must
  // not overtake one that waits for these rules, even if the rules have changed since.
  `alter table connections add column ordering jsonb, add column lines text check (lines in ('door', 'actor'))`,

  // An ordered row has a "place" among the rows with its "ordering_key". Its first attempt starts when it is the first of them, and
  // not before "ready_at". Until then "due_at" is so late that no search by due time finds the row. So the first row of a key is found
  // quickly, even if many wait behind it. After a failure, the retry is found by its due time again. It keeps its place ("ready_at" is
  // null) or loses it ("place" is null too).
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
