import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Keeps autovacuum away from the tables of a suite's own database. What it reads would count as read by the gateway's statements, and its
 * looks would come at any moment instead of where the test has one.
 */
export const withoutAutovacuum = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const tables = yield* sql<{ name: string }>`select relid::regclass::text as name
    from pg_stat_user_tables join pg_class on pg_class.oid = relid where relkind = 'r'`
  for (const { name } of tables) yield* sql.unsafe(`alter table ${name} set (autovacuum_enabled = false)`)
})
