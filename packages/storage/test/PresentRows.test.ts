import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import * as ControlPlane from "./controlPlane.ts"
import { withoutAutovacuum } from "./withoutAutovacuum.ts"

const { createConnection, createDestination, createSource, team } = ControlPlane

/** Rows and index entries that the server has read of a team's sources and destinations so far. */
const reads = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`select pg_stat_force_next_flush()`
  const [row] = yield* sql<{ count: number }>`
    select ((select sum(seq_tup_read) from pg_stat_user_tables where relname = any(${["sources", "destinations"]})) +
      (select sum(idx_tup_read) from pg_stat_user_indexes where relname = any(${["sources", "destinations"]})))::int4 as count`
  return row!.count
})

layer(ControlPlane.layerOf({ connections: 1 }), { excludeTestServices: true })("Rows of a team", (it) => {
  it.effect("The rows of a team are found by id, even with plans made when the team had few rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* withoutAutovacuum
      const connect = Effect.gen(function* () {
        const ends = { source_id: (yield* createSource()).id, destination_id: (yield* createDestination()).id }
        yield* createConnection(ends)
      })
      // From the sixth time on the server keeps a plan.
      yield* Effect.repeat(connect, { times: 10 })
      yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
        select 'src_' || i, ${team}, 'many ' || i, 'WEBHOOK', '{}'::jsonb, now(), now() from generate_series(1, 3000) i`
      yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
        select 'dst_' || i, ${team}, 'many ' || i, 'HTTP', '{}'::jsonb, now(), now() from generate_series(1, 3000) i`
      const before = yield* reads
      yield* connect
      expect((yield* reads) - before).toBeLessThan(100)
    })
  )
})
