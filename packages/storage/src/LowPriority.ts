import { setPriority } from "node:os"
import { Effect } from "effect"
import type { SqlConnection } from "effect/sql"

/**
 * The priority of server processes that work for reports (0: that of the others, 19: the lowest). While all processors are busy, such a
 * process gets a tenth of the time of another one. It is not the lowest because it holds locks of the server for moments.
 */
export const reportPriority = 10

/**
 * Lowers the priority of the connection's server process. Only for the embedded server: its processes are on this machine and belong to the
 * user of this process, unless that is root.
 */
export const lowerPriority = Effect.fnUntraced(function* (connection: SqlConnection.Connection) {
  const [row] = yield* connection.executeValues("select pg_backend_pid()", [])
  // If the system forbids it, the report runs as other reads do.
  yield* Effect.ignore(Effect.try(() => setPriority(Number(row?.[0]), reportPriority)))
})
