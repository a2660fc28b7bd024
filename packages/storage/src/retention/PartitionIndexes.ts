import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"

/**
 * A day that an index does not cover yet. `built`: true: its part of the index is complete and only has to be attached; false:
 * building it was interrupted; null: there is none.
 */
interface Missing {
  readonly index: string
  readonly definition: string
  readonly day: string
  readonly name: string
  readonly built: boolean | null
}

const missing = (sql: SqlClient.SqlClient) => sql<Missing>`
  select i.relname as index, pg_get_indexdef(i.oid) as definition, d.relname as day, p.name,
    (select indisvalid from pg_index where indexrelid = to_regclass(p.name)) as built
  from pg_index x
    join pg_class i on i.oid = x.indexrelid and i.relkind = 'I' and i.relnamespace = current_schema()::regnamespace
    join pg_inherits h on h.inhparent = x.indrelid
    join pg_class d on d.oid = h.inhrelid
    cross join lateral (select d.relname || '_' || i.relname as name) p
  where not x.indisvalid and not exists (
    select from pg_inherits ih join pg_index ix on ix.indexrelid = ih.inhrelid
    where ih.inhparent = x.indexrelid and ix.indrelid = d.oid)
  order by d.relname desc, i.relname`

/** The definition of an index as the server writes it, after its name and its table. */
const body = (definition: string): string => definition.slice(definition.indexOf(" USING "))

/**
 * Completes an index that a migration has created for future days only: builds it for the existing days, the newest first,
 * without blocking writers. When another process is doing that, it does nothing. The next call starts an interrupted build again.
 */
export const indexPartitions: Effect.Effect<number, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  if ((yield* missing(sql)).length === 0) return 0
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const session = yield* sql.reserve
      const run = (statement: string) => session.executeUnprepared(statement, [], undefined)
      // The lock is tried, not waited for: `create index concurrently` waits for all running statements, so two processes would
      // wait for each other.
      const [lock] = yield* run(`select pg_try_advisory_lock(hashtext('tidegate.indexes')) as free`)
      if ((lock as { readonly free?: boolean } | undefined)?.free !== true) return 0
      yield* Effect.addFinalizer(() =>
        Effect.forEach(
          [`reset statement_timeout`, `reset lock_timeout`, `select pg_advisory_unlock(hashtext('tidegate.indexes'))`],
          (statement) => Effect.ignore(run(statement)),
          { discard: true }
        )
      )
      // A large day takes minutes, and the build waits for older transactions.
      yield* run(`set statement_timeout = 0`)
      yield* run(`set lock_timeout = 0`)
      const days = yield* missing(sql)
      for (const { built, day, definition, index, name } of days) {
        if (built === false) yield* run(`drop index concurrently ${name}`)
        if (built !== true) yield* run(`create index concurrently ${name} on ${day}${body(definition)}`)
        yield* run(`alter index ${index} attach partition ${name}`)
      }
      return days.length
    })
  )
})
