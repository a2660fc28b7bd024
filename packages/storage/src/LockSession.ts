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
 * A runner says that it lives and then asks which locks it holds, for as long as it lives and whatever it does: here the first waits for the second
 * and both are one statement. Fails as the two do: who is not answered holds nothing, and a heartbeat that was never followed was not
 * sent. What is worded otherwise by another version of the cluster library goes through as it is.
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

/** The client, whose reserved connections do that. */
export const withLockSession = (sql: SqlClient.SqlClient): SqlClient.SqlClient => {
  const reserve = Effect.map(sql.reserve, beatingWithLocks)
  const wrapped: SqlClient.SqlClient = new Proxy(sql, {
    get: (target, name, receiver) =>
      name === "reserve" ? reserve : name === "withoutTransforms" ? () => wrapped : Reflect.get(target, name, receiver)
  })
  return wrapped
}
