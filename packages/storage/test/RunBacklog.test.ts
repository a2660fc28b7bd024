import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { runBacklog } from "@tidegate/storage/workflows/RunBacklog"
import { freshDatabase } from "../../../test/postgres.ts"

const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url, hotConnections: 1 }))))
)

const start = Date.parse("2026-01-01T00:00:00Z")

layer(world, { excludeTestServices: true })("Backlog of runs", (it) => {
  it.effect("Unfinished runs are counted for the given shards, and the oldest due one is of an active workflow", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      expect(yield* runBacklog([1, 2])).toEqual({ waiting: 0, oldestDue: null })
      yield* sql`insert into teams (id, name) values ('tm', 'T')`
      for (const [id, status] of [
        ["wfl_active", "active"],
        ["wfl_paused", "paused"],
        ["wfl_other", "active"]
      ]) {
        yield* sql`insert into workflows (id, team_id, name, status, version, steps, edges, definition_hash, created_at, updated_at)
          values (${id!}, 'tm', ${id!}, ${status!}, 1, '[]', '[]', '', now(), now())`
      }
      const fill = (shard: number, workflow: string, count: number, due: number) => sql`
        insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
        select ${`${workflow}/`} || i, 'tm', ${shard}, ${workflow}, ${new Date(due)}::timestamptz + make_interval(secs => i - 1)
        from generate_series(1, ${count}::int) i`
      yield* fill(1, "wfl_active", 1_200, start)
      yield* fill(2, "wfl_paused", 3, start - 60_000)
      yield* fill(3, "wfl_other", 5, start - 30_000)
      expect(yield* runBacklog([1, 2])).toEqual({ waiting: 1_003, oldestDue: start })
      expect(yield* runBacklog([2])).toEqual({ waiting: 3, oldestDue: null })
    })
  )
})
