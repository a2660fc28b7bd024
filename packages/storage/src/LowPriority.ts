import { setPriority } from "node:os"
import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Connection } from "effect/sql/SqlConnection"

/**
 * The priority of a server process that works for reports (0: that of the others, 19: the lowest). While both processors are busy it gets a
 * tenth of the time that another process gets.
 */
export const reportPriority = 10

/** The process is always that of the connection, and not one whose id was read before. */
const lower = Effect.fnUntraced(function* (connection: Connection) {
  const [row] = yield* connection.executeValues("select pg_backend_pid()", [])
  // A system that forbids it, or a server that has ended meanwhile, is no reason to fail: the report only runs as other reads do.
  yield* Effect.ignore(Effect.try(() => setPriority(Number(row?.[0]), reportPriority)))
})

/**
 * The client, whose reserved connections have server processes of a low priority. Only for the embedded server: its processes are on this
 * machine, and they belong to the user of this process, unless that is root.
 */
export const withLowPriority = <Client extends SqlClient.SqlClient>(sql: Client): Client =>
  Object.assign(sql, { reserve: Effect.tap(sql.reserve, lower) })
