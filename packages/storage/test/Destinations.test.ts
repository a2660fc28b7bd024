import { expect, layer } from "@effect/vitest"
import { Effect, Exit, Result } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "../src/control/Connections.ts"
import type { DestinationFields } from "@tidegate/resources/Destination"
import { Destinations } from "../src/control/Destinations.ts"
import { beginConsent, claimTokens, readTokens, storeTokens } from "../src/delivery/DestinationTokens.ts"
import { rollupBins } from "../src/retention/RollupBins.ts"
import * as ControlPlane from "./controlPlane.ts"
import { addQuarters } from "./quarterCounts.ts"

const { createConnection, createDestination, createSource, destinationFields, otherTeam, team, versionOf } =
  ControlPlane

const change = (fields: Partial<DestinationFields>) => (stored: DestinationFields) =>
  Result.succeed({ ...stored, auth: "unchanged" as const, ...fields })

layer(ControlPlane.layer, { excludeTestServices: true })("Destinations in SQL", (it) => {
  it.effect("A stored destination is returned with masked secrets", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destinations = yield* Destinations
      const id = newId(prefixes.destination, Date.now())
      const config = { ...destinationFields().config, rate_limit: 10, auth_type: "CUSTOM_HEADER" }
      const auth = { header_name: "x-token", value: "a-secret-token" }
      const created = yield* destinations.create(team, id, destinationFields({ name: "shop", config, auth }))
      expect(created).toStrictEqual({
        id,
        team_id: team,
        name: "shop",
        description: null,
        type: "HTTP",
        config: {
          url: "https://target.test/hook",
          http_method: null,
          path_forwarding_disabled: false,
          forward_credentials: null,
          rate_limit: 10,
          rate_limit_period: "second",
          max_concurrency: null,
          timeout_ms: null,
          client_certificate: null,
          client_key: null,
          server_ca: null,
          client_certificate_expires_at: null,
          auth_type: "CUSTOM_HEADER",
          auth: { header_name: "x-token", value: "****oken" }
        },
        disabled_at: null,
        held_until: null,
        attempts_24h_count: 0,
        attempts_24h_bins: [0, 0, 0, 0, 0, 0],
        created_at: created.created_at,
        updated_at: created.created_at
      })
      expect(yield* destinations.get(team, id)).toStrictEqual(created)
      expect(yield* destinations.findByName(team, "shop")).toBe(id)
      expect(yield* destinations.findByName(otherTeam, "shop")).toBe(null)
      const [row] = yield* sql`select auth, config from destinations where id = ${id}`
      expect(JSON.stringify(row)).not.toContain("a-secret-token")
      expect(yield* destinations.create(team, id, destinationFields({ name: "shop" }))).toStrictEqual(created)
    })
  )

  it.effect("A destination that no longer obtains tokens keeps none and accepts none from late callers", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destinations = yield* Destinations
      const auth = { token_url: "https://id.test/token", client_id: "a", client_secret: "b" }
      const config = { ...destinationFields().config, auth_type: "OAUTH2_CLIENT_CREDENTIALS" }
      const another = { config: { ...config, auth_type: "CUSTOM_HEADER" }, auth: { header_name: "x-a", value: "b" } }
      const left = Effect.fnUntraced(function* (change_: Partial<DestinationFields> | null) {
        const { id } = yield* createDestination({ config, auth })
        const owner = { id, team_id: team }
        expect(yield* claimTokens(owner, "claim", 10_000)).toEqual({})
        yield* storeTokens(owner, "claim", { refresh: "r3fresh" })
        yield* claimTokens(owner, "claim", 10_000)
        if (change_ === null) yield* destinations.delete(team, id)
        else yield* destinations.update(team, id, change(change_))
        const stored = yield* readTokens(owner)
        if (!("refresh" in stored)) expect(yield* storeTokens(owner, "claim", { refresh: "r3newed" })).toBe(false)
        if (change_ === null) {
          expect(yield* claimTokens(owner, "claim", 10_000)).toBe(null)
          yield* beginConsent(owner, "state", {}, new Date())
          expect(yield* sql`select from destination_tokens where destination_id = ${id}`).toEqual([])
        }
        return stored
      })
      expect(yield* left({ auth: { ...auth, client_secret: "c" } })).toEqual({ refresh: "r3fresh" })
      expect(yield* left({ auth: { ...auth, disabled: true } })).toEqual({})
      expect(yield* left(another)).toEqual({})
      expect(yield* left(null)).toEqual({})
    })
  )

  it.effect("The counts of a destination are read with one cached plan", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
        select 'des_' || n, 'attempt_failed', date_trunc('minute', now()) - m * interval '1 minute', 1, ${team}, 1
        from generate_series(1, 40) n, generate_series(0, 60) m`
      yield* addQuarters
      yield* sql`analyze rollups`
      // One connection, as those of the pool are in the long run.
      const plans = yield* sql.withTransaction(
        Effect.gen(function* () {
          for (let n = 1; n <= 12; n++) {
            const found = yield* rollupBins(sql, [`des_${n}`], ["attempt_successful", "attempt_failed"], Date.now())
            expect(found.get(`des_${n}`)?.reduce((sum, count) => sum + count, 0)).toBe(61)
          }
          return yield* sql<{ generic: number; custom: number }>`
            select generic_plans::int4 as generic, custom_plans::int4 as custom from pg_prepared_statements
            where statement like '%from counts cross join lateral%' and statement not like '%pg_prepared_statements%'`
        })
      )
      expect(plans).toHaveLength(1)
      expect(plans[0]!.generic).toBeGreaterThanOrEqual(6)
    })
  )

  it.effect("A destination name that is taken is rejected, even in concurrent creations", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const exits = yield* Effect.forEach(
        Array.from({ length: 4 }, () => createDestination({ name: "contended" })),
        Effect.exit,
        { concurrency: "unbounded" }
      )
      const winner = exits.find(Exit.isSuccess)?.value
      const expected = fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", {
        id: winner?.id ?? "",
        resource_type: "destination"
      })
      for (const exit of exits.filter(Exit.isFailure)) expect(yield* Effect.flip(exit)).toStrictEqual(expected)
      expect(exits.filter(Exit.isFailure).length).toBe(3)
      const other = yield* createDestination()
      const renamed = yield* Effect.flip(destinations.update(team, other.id, change({ name: "contended" })))
      expect(renamed).toStrictEqual(expected)
    })
  )

  it.effect("A destination is not found by another team, or after its deletion", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const { id } = yield* createDestination()
      const assertMissing = Effect.fnUntraced(function* (teamId: string) {
        const calls: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
          destinations.get(teamId, id),
          destinations.update(teamId, id, change({})),
          destinations.switch(teamId, id, "disable"),
          destinations.delete(teamId, id)
        ]
        for (const call of calls) {
          const { code, data } = yield* Effect.flip(call)
          expect({ code, data }).toStrictEqual({ code: "NOT_FOUND", data: { resource_type: "destination", id } })
        }
      })
      yield* assertMissing(otherTeam)
      yield* destinations.delete(team, id)
      yield* assertMissing(team)
    })
  )

  it.effect("A destination can be disabled and enabled, and a repetition has no effect", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destinations = yield* Destinations
      const { destination_id: id, source_id } = yield* createConnection()
      const version = (yield* versionOf(source_id)) ?? 0
      const cancelBefore = Effect.map(
        sql<{ at: Date | null }>`select cancel_before as at from destinations where id = ${id}`,
        ([row]) => row?.at?.toISOString() ?? null
      )
      expect(yield* cancelBefore).toBe(null)
      const disabled = yield* destinations.switch(team, id, "disable")
      expect(yield* cancelBefore).toBe(disabled.disabled_at)
      expect(yield* destinations.switch(team, id, "disable")).toStrictEqual(disabled)
      expect(yield* versionOf(source_id)).toBe(version + 1)
      const enabled = yield* destinations.switch(team, id, "enable")
      expect(enabled.disabled_at).toBe(null)
      // What waited meanwhile does not come back.
      expect(yield* cancelBefore).toBe(enabled.updated_at)
      expect(yield* destinations.switch(team, id, "enable")).toStrictEqual(enabled)
      expect(yield* versionOf(source_id)).toBe(version + 2)
    })
  )

  it.effect("A change that affects routing raises the versions of the sources, and no other change does", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const connections = yield* Connections
      const destination = yield* createDestination()
      const [first, second, gone, stranger] = yield* Effect.all([
        createSource(),
        createSource(),
        createSource(),
        createSource()
      ])
      yield* createConnection({ source_id: first.id, destination_id: destination.id })
      yield* createConnection({ source_id: second.id, destination_id: destination.id })
      const removed = yield* createConnection({ source_id: gone.id, destination_id: destination.id })
      yield* connections.delete(team, removed.id)
      const versions = Effect.forEach([first, second, gone, stranger], ({ id }) => versionOf(id))
      expect(yield* versions).toStrictEqual([2, 2, 3, 1])
      yield* destinations.update(team, destination.id, change({ description: "same routing" }))
      expect(yield* versions).toStrictEqual([2, 2, 3, 1])
      yield* destinations.update(team, destination.id, change({ type: "MOCK_API" }))
      expect(yield* versions).toStrictEqual([3, 3, 3, 1])
      yield* destinations.switch(team, destination.id, "disable")
      expect(yield* versions).toStrictEqual([4, 4, 3, 1])
      yield* destinations.delete(team, destination.id)
      expect(yield* versions).toStrictEqual([5, 5, 3, 1])
    })
  )

  it.effect("Deleting a destination deletes its connections", () =>
    Effect.gen(function* () {
      const destinations = yield* Destinations
      const connections = yield* Connections
      const connection = yield* createConnection()
      yield* destinations.delete(team, connection.destination_id)
      expect((yield* Effect.flip(connections.get(team, connection.id))).code).toBe("NOT_FOUND")
    })
  )

  it.effect("A destination deleted while connections are created to it leaves none behind", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const destinations = yield* Destinations
      const destination = yield* createDestination()
      const attempts = yield* Effect.all(
        [
          Effect.forEach(
            Array.from({ length: 8 }),
            () => Effect.exit(createConnection({ destination_id: destination.id })),
            { concurrency: 4 }
          ),
          destinations.delete(team, destination.id)
        ],
        { concurrency: "unbounded" }
      ).pipe(Effect.map(([attempts]) => attempts))
      for (const exit of attempts.filter(Exit.isFailure)) {
        expect((yield* Effect.flip(exit)).data).toStrictEqual({ resource_type: "destination", id: destination.id })
      }
      const [left] = yield* sql<{ count: number }>`
        select count(*)::int4 as count from connections where destination_id = ${destination.id} and deleted_at is null`
      expect(left?.count).toBe(0)
    })
  )

  it.effect("The attempts of the last 24 hours are counted in six bins", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const now = Date.UTC(2026, 0, 2, 12, 0, 30)
      const attempts = ["attempt_successful", "attempt_failed"]
      const count = Effect.fnUntraced(function* (
        key: string,
        minutesAgo: number,
        measure: string,
        slot: number,
        n: number
      ) {
        const minute = new Date(Math.floor(now / 60_000) * 60_000 - minutesAgo * 60_000)
        yield* sql`insert into rollups (key_id, measure, minute, slot, team_id, count)
          values (${key}, ${measure}, ${minute}, ${slot}, ${team}, ${n})`
      })
      yield* count("des_a", 0, "attempt_successful", 1, 1)
      yield* count("des_a", 0, "attempt_failed", 1, 10)
      yield* count("des_a", 0, "attempt_failed", 2, 100)
      yield* count("des_a", 239, "attempt_successful", 1, 1_000)
      yield* count("des_a", 241, "attempt_successful", 1, 7)
      yield* count("des_a", 24 * 60 - 1, "attempt_successful", 1, 3)
      yield* count("des_a", 24 * 60, "attempt_successful", 1, 10_000)
      yield* count("des_a", 5, "created", 1, 20_000)
      yield* count("des_b", 5, "attempt_failed", 1, 5)
      yield* addQuarters
      const bins = yield* rollupBins(sql, ["des_a", "des_b", "des_c"], attempts, now)
      expect(bins.get("des_a")).toStrictEqual([3, 0, 0, 0, 7, 1_111])
      expect(bins.get("des_b")).toStrictEqual([0, 0, 0, 0, 0, 5])
      expect(bins.get("des_c")).toStrictEqual([0, 0, 0, 0, 0, 0])
      expect((yield* rollupBins(sql, [], attempts, now)).size).toBe(0)
    })
  )
})
