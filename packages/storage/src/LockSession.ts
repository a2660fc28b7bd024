import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { Connection } from "effect/sql/SqlConnection"

interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

const isHeartbeat = (text: string): boolean =>
  /^\s*UPDATE\s+"?cluster_runners"? SET last_heartbeat = NOW\(\)/i.test(text)
const asksForLocks = (text: string): boolean => /^\s*SELECT objid FROM pg_locks\b/i.test(text)

/**
 * A runner writes its heartbeat and then asks which locks it holds, periodically for as long as it lives. Here the first waits
 * for the second, and both become one statement. It fails as the two do: a runner without an answer holds no locks, and a
 * heartbeat that no lock query followed was not sent. Statements that another version of the cluster library words differently
 * pass unchanged.
 */
export const beatingWithLocks = (connection: Connection): Connection => {
  let beat: Statement | null = null
  return Object.assign(Object.create(connection) as Connection, {
    executeRaw: (text: string, params: ReadonlyArray<unknown>) =>
      Effect.suspend((): Effect.Effect<unknown> | ReturnType<Connection["executeRaw"]> => {
        if (!isHeartbeat(text)) return connection.executeRaw(text, params)
        beat = { text, params }
        return Effect.succeed([])
      }),
    executeValues: (text: string, params: ReadonlyArray<unknown>) =>
      Effect.suspend(() => {
        if (beat === null || params.length > 0 || !asksForLocks(text)) return connection.executeValues(text, params)
        const { params: address, text: first } = beat
        beat = null
        return connection.executeValues(`with beat as (${first}) ${text}`, address)
      })
  })
}

/** The client, with reserved connections that do that. */
export const withLockSession = (sql: SqlClient.SqlClient): SqlClient.SqlClient => {
  const reserve = Effect.map(sql.reserve, beatingWithLocks)
  const wrapped: SqlClient.SqlClient = new Proxy(sql, {
    get: (target, name, receiver) =>
      name === "reserve" ? reserve : name === "withoutTransforms" ? () => wrapped : Reflect.get(target, name, receiver)
  })
  return wrapped
}
