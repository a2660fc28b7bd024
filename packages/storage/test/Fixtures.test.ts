import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import {
  createFixture,
  deleteFixture,
  fixtureOf,
  fixtureReplay,
  fixtureTargets,
  listFixtures,
  maxFixtures,
  updateFixture
} from "../src/control/Fixtures.ts"
import { storeReplay } from "../src/bulk/Replays.ts"
import { retain } from "../src/retention/Retention.ts"
import { resourcesOf } from "./OldDays.ts"
import { atOnce, codeOf, mine, other, requestOf, world } from "./twoTeams.ts"

const made = (day = 0) =>
  createFixture({ team_id: mine, request_id: requestOf(mine, day), name: "f", description: null })

layer(world, { excludeTestServices: true })("Fixture", (it) => {
  it.effect("A fixture is invisible to another team", () =>
    Effect.gen(function* () {
      const { id } = yield* made()
      const { connection } = resourcesOf(mine)
      const all = { sources: [], search: undefined }
      const page = { key: "k", cursor: undefined, limit: 100 }
      expect((yield* listFixtures(other, all, page)).models).toEqual([])
      expect((yield* listFixtures(mine, all, page)).models.length).toBe(1)
      const replay = { team_id: other, id, connection_id: connection, request_id: "req" }
      expect([
        yield* codeOf(fixtureOf(other, id)),
        yield* codeOf(updateFixture(other, id, { name: "x" })),
        yield* codeOf(deleteFixture(other, id)),
        yield* codeOf(fixtureTargets(other, id)),
        yield* codeOf(fixtureReplay(replay))
      ]).toEqual(Array(5).fill("NOT_FOUND"))
      expect((yield* fixtureOf(mine, id)).name).toBe("f")
      expect(
        yield* codeOf(createFixture({ team_id: mine, request_id: requestOf(other), name: "f", description: null }))
      ).toBe("NOT_FOUND")
      expect((yield* fixtureTargets(mine, id)).map(({ connection_id }) => connection_id)).toEqual([connection])
    })
  )

  it.effect("A fixture outlives its original request and can still be replayed", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const fixture = yield* made(2)
      yield* retain({ payloadDays: 1, recordDays: 1 })
      expect(yield* sql`select from requests where id = ${fixture.original_request_id}`).toEqual([])
      expect(yield* fixtureOf(mine, fixture.id)).toEqual(fixture)
      const { connection } = resourcesOf(mine)
      const given = {
        team_id: mine,
        id: fixture.id,
        connection_id: connection,
        request_id: newId(prefixes.request, Date.now())
      }
      const { replay } = yield* fixtureReplay(given)
      expect(replay).toMatchObject({
        id: given.request_id,
        only: [connection],
        presentedOf: fixture.original_request_id,
        retry: { kind: "single", parent_request_id: fixture.original_request_id, operation_id: null }
      })
      expect(replay.message.body.length).toBe(64)
      // Counted with what it stores: once, however often it comes.
      const routing = { shardOf: () => 1, orderingKeyOf: () => null }
      const { created_at } = yield* storeReplay(replay, routing)
      yield* storeReplay(replay, routing)
      expect(yield* fixtureOf(mine, fixture.id)).toMatchObject({
        replay_count: 1,
        last_replayed_at: created_at.toISOString()
      })
    })
  )

  it.effect("A fixture cannot be created from a request whose payload is deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`update requests set body = null where id = ${requestOf(mine, 0)}`
      expect(yield* codeOf(made(0))).toBe("PAYLOAD_UNAVAILABLE")
      yield* sql`update requests set body = 'x' where id = ${requestOf(mine, 0)}`
    })
  )

  it.effect("The number of fixtures of a team is limited, even in concurrent creations", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* made(0)
      const [{ count }] = (yield* sql<{ count: number }>`
        select count(*)::int as count from request_fixtures where team_id = ${mine}`) as [{ count: number }]
      yield* sql`insert into request_fixtures select (json_populate_record(f, json_build_object('id', 'fix_' || n))).*
        from request_fixtures f, generate_series(1, ${maxFixtures - count - 2}::int) n where f.id = ${id}`
      expect(yield* atOnce(Array.from({ length: 6 }, () => made(0)))).toEqual({
        made: 2,
        codes: ["TEAM_LIMIT_REACHED"]
      })
      yield* sql`delete from request_fixtures where team_id = ${mine}`
    })
  )
})
