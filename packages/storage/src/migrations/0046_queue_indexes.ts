import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The table of deliveries is almost empty most of the time. A plan that PostgreSQL makes then may use any index that contains a
 * column of the statement, because all of them look equally cheap, and it keeps that plan through the next burst: each look-up by an event's
 * id read a whole index, and a connection queue was sorted for each read of its first rows.
 *
 * So each index has a condition that only the statements it is made for fulfil: a queue is read by its shard, and only what
 * cancels or counts the events of a connection says `connection_id <> ''`.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create index deliveries_due_now on deliveries (shard, destination_id, connection_id, due_at, event_id) where shard is not null`,
  `drop index deliveries_due`,
  `alter index deliveries_due_now rename to deliveries_due`,
  `create index deliveries_of_connection on deliveries (connection_id) where connection_id <> ''`,
  `drop index deliveries_connection`,
  `alter index deliveries_of_connection rename to deliveries_connection`
]
