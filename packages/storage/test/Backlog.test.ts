import { expect, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { backlogs, maxCounted } from "@tidegate/storage/delivery/Backlog"
import * as Database from "@tidegate/storage/Database"
import { migrate } from "@tidegate/storage/Migrations"
import { freshDatabase } from "../../../test/postgres.ts"

const world = Layer.effectDiscard(migrate).pipe(
  Layer.provideMerge(Layer.unwrap(Effect.map(freshDatabase, (url) => Database.layer({ url, hotConnections: 1 }))))
)

const start = Date.parse("2026-01-01T00:00:00Z")

/** So many events that wait, due one after the other, a second apart. */
const fill = Effect.fnUntraced(function* (
  shard: number,
  destination: string,
  connection: string,
  count: number,
  firstDue: number
) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
    select ${`${destination}/${connection}/`} || i, ${shard}, ${destination}, ${connection},
      ${new Date(firstDue)}::timestamptz + make_interval(secs => i - 1) from generate_series(1, ${count}::int) i`
})

layer(world, { excludeTestServices: true })("Backlogs", (it) => {
  it.effect("Backlogs are counted by destination for the given shards, and the oldest comes first", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      expect(yield* backlogs([1, 2])).toEqual([])
      yield* fill(1, "des_a", "web_1", 3, start + 5_000)
      yield* fill(1, "des_a", "web_2", 2, start + 4_000)
      yield* fill(2, "des_b", "web_3", 1, start)
      yield* fill(3, "des_elsewhere", "web_4", 9, start)
      yield* fill(2, "des_paused", "web_paused", 4, start - 9_000)
      yield* sql`insert into teams (id, name) values ('tm', 'T')`
      yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
        values ('src', 'tm', 's', 'WEBHOOK', '{}', now(), now())`
      yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
        values ('des_paused', 'tm', 'd', 'HTTP', '{}', now(), now())`
      yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, paused_at, created_at, updated_at)
        values ('web_paused', 'tm', 'paused', 'src', 'des_paused', '[]', now(), now(), now())`
      expect(yield* backlogs([1, 2])).toEqual([
        { destinationId: "des_b", waiting: 1, oldestDue: start },
        { destinationId: "des_a", waiting: 5, oldestDue: start + 4_000 },
        { destinationId: "des_paused", waiting: 4, oldestDue: null }
      ])
    })
  )

  it.effect("A backlog is as old as its oldest event that waits behind its ordering key", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into deliveries (event_id, shard, destination_id, connection_id, due_at, ordering_key, place, ready_at)
        select 'lined/' || i, 5, 'des_lined', 'web_lined', '9999-01-01', 'key', i,
          ${new Date(start)}::timestamptz + make_interval(secs => i) from generate_series(1, 3) i`
      expect(yield* backlogs([5])).toEqual([{ destinationId: "des_lined", waiting: 3, oldestDue: start + 1_000 }])
    })
  )

  it.effect("The number of counted events and of listed destinations is bounded", () =>
    Effect.gen(function* () {
      yield* fill(7, "des_long", "web_1", maxCounted + 100, start)
      for (let i = 0; i < 120; i++) yield* fill(7, `des_${i}`, "web_1", 1, start + 1_000 + i)
      const found = yield* backlogs([7])
      expect(found).toHaveLength(100)
      expect(found[0]).toEqual({ destinationId: "des_long", waiting: maxCounted, oldestDue: start })
    })
  )
})
