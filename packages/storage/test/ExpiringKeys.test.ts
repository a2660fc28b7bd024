import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { SystemEventBody } from "@tidegate/model/SystemEvents"
import { Journal } from "@tidegate/storage/Journal"
import { raiseAlarms } from "../src/alarms/Alarms.ts"
import { noteExpiringKeys } from "../src/alarms/ExpiringKeys.ts"
import { Sources } from "../src/control/Sources.ts"
import { ensurePartitions } from "../src/retention/Partitions.ts"
import { createKey, revokeKey, updateKey } from "../src/teams/ProjectKeys.ts"
import { newSigningSecret, projectSecrets, replaceSecrets } from "../src/teams/ProjectSecrets.ts"
import * as ControlPlane from "./controlPlane.ts"

/** What a team is told of its keys. Each look is that of another process: what was told is known from the database only. */

const { sourceFields, unique } = ControlPlane
const hour = 3_600_000
const day = 24 * hour
const start = Date.now()

const world = Journal.layer.pipe(Layer.provideMerge(ControlPlane.layerOf({ connections: 6 })))
const routing = { shardOf: () => 1, orderingKeyOf: () => null }
const look = Effect.fnUntraced(function* (now: number) {
  yield* ensurePartitions(now)
  yield* noteExpiringKeys(now)
  yield* raiseAlarms(routing, (team) => `mark of ${team}`, now)
})

const makeTeam = Effect.fnUntraced(function* () {
  const sql = yield* SqlClient.SqlClient
  const team = unique("tm_expiring")
  yield* sql`insert into teams (id, name) values (${team}, ${team})`
  const sources = yield* Sources
  const system = yield* sources.create(team, newId(prefixes.source, start), sourceFields({ type: "SYSTEM" }))
  return { team, system }
})

const policy = { name: "ci", scopes: ["control:read"], execute_grants: [], rate_limit_per_minute: 240 } as const
const endsIn = (days: number) => new Date(start + days * day).toISOString()
const keyOf = (team: string, expires_at: string | null) =>
  Effect.map(createKey(team, { ...policy, expires_at }, null), ({ key }) => key)

const decode = Schema.decodeUnknownSync(SystemEventBody)
const toldOf = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ body: Uint8Array }>`
    select r.body from requests r join sources s on s.id = r.source_id
    where r.team_id = ${team} and s.type = 'SYSTEM' order by r.created_at, r.id`
  return rows.map(({ body }) => decode(JSON.parse(Buffer.from(body).toString())))
})
const hoursOf = (team: string) => Effect.map(toldOf(team), (told) => told.map(({ data }) => data.hours_before))

layer(world, { excludeTestServices: true })("Expiring keys", (it) => {
  it.effect(
    "A key that expires is told of 30 days, 7 days and 1 day before, once each by two looks at the same time",
    () =>
      Effect.gen(function* () {
        const { team } = yield* makeTeam()
        const key = yield* keyOf(team, endsIn(100))
        yield* keyOf(team, null)
        const both = (now: number) => Effect.all([look(now), look(now)], { concurrency: 2 })
        for (const days of [69.9, 70, 93, 99, 100]) {
          yield* both(start + days * day)
          yield* look(start + days * day)
        }
        const told = yield* toldOf(team)
        expect(told.map(({ data }) => data.hours_before)).toEqual([720, 168, 24])
        for (const { data, subject, type } of told) {
          expect([type, subject]).toEqual(["key.expiring", { type: "key", id: key.id, name: "ci" }])
          expect(data).toMatchObject({ count: 1, error_codes: [], sample_ids: [], expires_at: endsIn(100) })
        }
      })
  )

  it.effect("After a long absence only the latest warning is given, and none about a key that has ended", () =>
    Effect.gen(function* () {
      const { team } = yield* makeTeam()
      yield* keyOf(team, endsIn(60))
      yield* keyOf(team, endsIn(50))
      yield* look(start + 55 * day)
      expect(yield* hoursOf(team)).toEqual([168])
    })
  )

  it.effect("A warning whose time had passed when the end was chosen is not given", () =>
    Effect.gen(function* () {
      const { team } = yield* makeTeam()
      const key = yield* keyOf(team, endsIn(10))
      yield* look(start + hour)
      expect(yield* hoursOf(team)).toEqual([])
      yield* look(start + 4 * day)
      expect(yield* hoursOf(team)).toEqual([168])
      // The same warning of another end is another one.
      yield* updateKey(team, key.id, (stored) =>
        Effect.succeed({ ...stored, status: "active" as const, expires_at: endsIn(100) })
      )
      yield* look(start + 5 * day)
      expect(yield* hoursOf(team)).toEqual([168])
      yield* look(start + 94 * day)
      expect(yield* hoursOf(team)).toEqual([168, 168])
    })
  )

  it.effect("A revoked key is not mentioned, and neither is a key of a team without an enabled system source", () =>
    Effect.gen(function* () {
      const [one, off] = [yield* makeTeam(), yield* makeTeam()]
      const key = yield* keyOf(one.team, endsIn(40))
      yield* keyOf(off.team, endsIn(40))
      yield* revokeKey(one.team, key.id)
      yield* (yield* Sources).switch(off.team, off.system.id, "disable")
      yield* look(start + 20 * day)
      for (const { team } of [one, off]) expect(yield* hoursOf(team)).toEqual([])
      // It is told of what is still to come when it listens again.
      yield* (yield* Sources).switch(off.team, off.system.id, "enable")
      yield* look(start + 20 * day)
      expect(yield* hoursOf(off.team)).toEqual([720])
    })
  )

  it.effect("A former signing secret is told of six hours before it ends", () =>
    Effect.gen(function* () {
      const { team } = yield* makeTeam()
      yield* projectSecrets(team)
      yield* replaceSecrets(team, { signing_secret: newSigningSecret() })
      yield* look(start + 12 * hour)
      expect(yield* toldOf(team)).toEqual([])
      yield* look(start + 20 * hour)
      yield* look(start + 21 * hour)
      expect(yield* toldOf(team)).toMatchObject([
        {
          type: "key.expiring",
          subject: { type: "key", id: team, name: "Former signing secret" },
          data: { hours_before: 6 }
        }
      ])
    })
  )
})
