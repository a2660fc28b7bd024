import { expect, layer } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Result } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Connections } from "../src/control/Connections.ts"
import type { SourceFields } from "@tidegate/resources/Source"
import { Sources } from "../src/control/Sources.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, createSource, otherTeam, sourceFields, team, concernedBy, versionOf } = ControlPlane

/** A change of what is stored that leaves the rest, its secrets included. */
const change = (fields: Partial<SourceFields>) => (stored: SourceFields) =>
  Result.succeed({ ...stored, auth: "unchanged" as const, ...fields })

layer(ControlPlane.layer, { excludeTestServices: true })("Sources in SQL", (it) => {
  it.effect("A stored source is returned with its URL", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const id = newId(prefixes.source, Date.now())
      const created = yield* sources.create(team, id, sourceFields({ name: "orders", description: "from the shop" }))
      expect(created).toStrictEqual({
        id,
        team_id: team,
        name: "orders",
        description: "from the shop",
        type: "WEBHOOK",
        input_type: "webhook",
        status: "enabled",
        url: `http://ingress.test/e/${id}`,
        config: {
          auth_type: null,
          auth: {},
          allowed_http_methods: ["POST"],
          custom_response: null,
          mode: "webhook",
          proxy: null,
          chat_defer_ephemeral: false,
          rate_limit: null,
          rate_limit_period: null
        },
        disabled_at: null,
        created_at: created.created_at,
        updated_at: created.created_at
      })
      expect(created.created_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      expect(yield* sources.get(team, id)).toStrictEqual(created)
      expect(yield* sources.findByName(team, "orders")).toBe(id)
      expect(yield* sources.findByName(otherTeam, "orders")).toBe(null)
    })
  )

  it.effect("The secrets of a source are returned masked and stored encrypted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const auth = {
        header_key: "x-signature",
        algorithm: "sha256",
        encoding: "hex",
        webhook_secret_key: "a-long-secret"
      }
      const config = { ...sourceFields().config, auth_type: "HMAC" as const }
      const { id, ...created } = yield* createSource({ config, auth })
      expect(created.config.auth).toStrictEqual({ ...auth, webhook_secret_key: "****cret" })
      const [row] = yield* sql<{ auth: string; config: object }>`select auth, config from sources where id = ${id}`
      expect(JSON.stringify(row)).not.toContain("a-long-secret")
      // Left alone, the ciphertext stays; changed, the new one is what a change is given.
      yield* sources.update(team, id, change({ description: "touched" }))
      const [same] = yield* sql<{ auth: string }>`select auth from sources where id = ${id}`
      expect(same?.auth).toBe(row?.auth)
      yield* sources.update(team, id, change({ auth: { ...auth, webhook_secret_key: "another-secret" } }))
      let seen: SourceFields | undefined
      yield* sources.update(team, id, (stored) => {
        seen = stored
        return change({})(stored)
      })
      expect(seen?.auth["webhook_secret_key"]).toBe("another-secret")
    })
  )

  it.effect("A source of an older version has the default values of newer settings", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const { id } = yield* createSource()
      yield* sql`update sources set config = config - array['chat_defer_ephemeral', 'rate_limit', 'rate_limit_period'] where id = ${id}`
      const later = { chat_defer_ephemeral: false, rate_limit: null, rate_limit_period: null }
      expect((yield* sources.get(team, id)).config).toMatchObject(later)
      let seen: SourceFields["config"] | undefined
      yield* sources.update(team, id, (stored) => {
        seen = stored.config
        return change({ description: "changed" })(stored)
      })
      expect(seen).toStrictEqual(sourceFields().config)
      const [row] = yield* sql<{ config: object }>`select config from sources where id = ${id}`
      expect(row?.config).toStrictEqual(sourceFields().config)
    })
  )

  it.effect("The custom response and proxy settings of a source are stored unchanged", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const config: SourceFields["config"] = {
        ...sourceFields().config,
        custom_response: {
          body: '{"t":"{{path}}"}',
          rules: [{ match: { path: { starts_with: "/a" }, body: { "a.b": [1, null] } }, response: { status: 404 } }]
        },
        mode: "proxy",
        proxy: {
          enabled: true,
          target_url: "https://example.com/base",
          path_forwarding: false,
          query_forwarding: true,
          timeout_ms: 1_000,
          capture_response_bytes: 0
        }
      }
      const { id } = yield* createSource({ config })
      expect((yield* sources.get(team, id)).config).toStrictEqual({ ...config, auth: {} })
    })
  )

  it.effect("A source with unreadable secrets can still be read and repaired", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const config = { ...sourceFields().config, auth_type: "API_KEY" as const }
      const { id } = yield* createSource({ config, auth: { header_key: "x-key", api_key: "secret-api-key" } })
      yield* sql`update sources set auth = 'v1.gone.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA' where id = ${id}`
      expect((yield* sources.get(team, id)).config.auth).toStrictEqual({})
      const source = yield* sources.update(team, id, change({ auth: { header_key: "x-key", api_key: "new-secret" } }))
      expect(source.config.auth).toStrictEqual({ header_key: "x-key", api_key: "****cret" })
    })
  )

  it.effect("A source name that is taken is rejected with the id of its owner", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const holder = yield* createSource({ name: "taken" })
      const other = yield* createSource()
      const expected = fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", {
        id: holder.id,
        resource_type: "source"
      })
      expect(yield* Effect.flip(createSource({ name: "taken" }))).toStrictEqual(expected)
      expect(yield* Effect.flip(sources.update(team, other.id, change({ name: "taken" })))).toStrictEqual(expected)
      // Case matters, and a deleted source's name is free.
      yield* createSource({ name: "Taken" })
      yield* sources.delete(team, holder.id)
      expect((yield* sources.update(team, other.id, change({ name: "taken" }))).name).toBe("taken")
    })
  )

  it.effect("A repeated creation of a source changes nothing", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const id = newId(prefixes.source, Date.now())
      const fields = sourceFields()
      const first = yield* sources.create(team, id, fields)
      expect(yield* sources.create(team, id, fields)).toStrictEqual(first)
      yield* sources.delete(team, id)
      expect((yield* Effect.flip(sources.create(team, id, fields))).code).toBe("NOT_FOUND")
    })
  )

  it.effect("Only one of several concurrent creations with the same name succeeds", () =>
    Effect.gen(function* () {
      const exits = yield* Effect.forEach(
        Array.from({ length: 6 }, () => createSource({ name: "contended" })),
        Effect.exit,
        { concurrency: "unbounded" }
      )
      const winner = exits.find(Exit.isSuccess)
      expect(exits.filter(Exit.isSuccess).length).toBe(1)
      const failures = yield* Effect.forEach(exits.filter(Exit.isFailure), (exit) => Effect.flip(exit))
      expect(failures.map(({ data }) => data)).toStrictEqual(
        failures.map(() => ({ id: winner?.value.id ?? "", resource_type: "source" }))
      )
    })
  )

  it.effect("A name that is taken between check and write is rejected", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const [first, second] = yield* Effect.all([createSource(), createSource()])
      const renamed = yield* Deferred.make<void>()
      const commit = yield* Deferred.make<void>()
      const rival = yield* Effect.forkChild(
        sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`update sources set name = 'wanted' where id = ${first.id}`
            yield* Deferred.succeed(renamed, undefined)
            yield* Deferred.await(commit)
          })
        )
      )
      yield* Deferred.await(renamed)
      const rename = yield* Effect.forkChild(Effect.flip(sources.update(team, second.id, change({ name: "wanted" }))))
      const isWaiting = Effect.map(
        sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        (rows) => rows.length > 0
      )
      yield* Effect.repeat(isWaiting, { until: (waiting) => waiting })
      yield* Deferred.succeed(commit, undefined)
      yield* Fiber.join(rival)
      expect(yield* Fiber.join(rename)).toStrictEqual(
        fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", { id: first.id, resource_type: "source" })
      )
    })
  )

  it.effect("A source is not found by another team, or after its deletion", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const { id } = yield* createSource()
      const missing = { code: "NOT_FOUND", data: { resource_type: "source", id } }
      const assertMissing = Effect.fnUntraced(function* (teamId: string) {
        const calls: ReadonlyArray<Effect.Effect<unknown, GatewayError>> = [
          sources.get(teamId, id),
          sources.update(teamId, id, change({})),
          sources.switch(teamId, id, "disable"),
          sources.delete(teamId, id)
        ]
        for (const call of calls) {
          const { code, data } = yield* Effect.flip(call)
          expect({ code, data }).toStrictEqual(missing)
        }
      })
      yield* assertMissing(otherTeam)
      expect((yield* sources.get(team, id)).status).toBe("enabled")
      yield* sources.delete(team, id)
      yield* assertMissing(team)
    })
  )

  it.effect("A rejected change of a source writes nothing", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const source = yield* createSource()
      const refusal = fail("VALIDATION_ERROR", "no")
      expect(yield* Effect.flip(sources.update(team, source.id, () => Result.fail(refusal)))).toStrictEqual(refusal)
      expect(yield* sources.get(team, source.id)).toStrictEqual(source)
      expect(yield* versionOf(source.id)).toBe(1)
    })
  )

  it.effect("Disabling a source disables its enabled connections, and enabling it enables exactly those", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const connections = yield* Connections
      const source = yield* createSource()
      const open = yield* createConnection({ source_id: source.id })
      const paused = yield* createConnection({ source_id: source.id, paused_at: new Date(1_000) })
      const off = yield* createConnection({ source_id: source.id })
      const bystander = yield* createConnection()
      yield* connections.switch(team, off.id, "disable")

      const disabled = yield* concernedBy((command) => sources.switch(team, source.id, "disable", command))
      expect(disabled.record.status).toBe("disabled")
      expect([...disabled.cancelled].sort()).toStrictEqual([open.id, paused.id].sort())
      expect([...disabled.destinations].sort()).toStrictEqual(
        [open, paused, off].map((connection) => connection.destination_id).sort()
      )
      const afterDisable = yield* connections.get(team, paused.id)
      expect(afterDisable.disabled_at).toBe(disabled.record.disabled_at)
      expect(afterDisable.paused_at).toBe(null)
      expect((yield* connections.get(team, bystander.id)).disabled_at).toBe(null)

      // The repeated command changes nothing, but the destinations concerned are notified again.
      const version = yield* versionOf(source.id)
      const again = yield* concernedBy((command) => sources.switch(team, source.id, "disable", command))
      expect({ ...again, destinations: [] }).toStrictEqual({ ...disabled, cancelled: [], destinations: [] })
      expect([...again.destinations].sort()).toStrictEqual([...disabled.destinations].sort())
      expect(yield* versionOf(source.id)).toBe(version)

      const enabled = yield* concernedBy((command) => sources.switch(team, source.id, "enable", command))
      expect(enabled.record.disabled_at).toBe(null)
      expect((yield* connections.get(team, open.id)).disabled_at).toBe(null)
      expect((yield* connections.get(team, paused.id)).disabled_at).toBe(null)
      expect((yield* connections.get(team, off.id)).disabled_at).not.toBe(null)
      yield* sources.switch(team, source.id, "enable")
      expect(yield* versionOf(source.id)).toBe((version ?? 0) + 1)
    })
  )

  it.effect("A connection that was disabled by itself stays disabled when its source is enabled", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      yield* sources.switch(team, source_id, "disable")
      yield* connections.switch(team, id, "disable")
      yield* sources.switch(team, source_id, "enable")
      expect((yield* connections.get(team, id)).disabled_at).not.toBe(null)
    })
  )

  it.effect("An update can disable and enable a source as well", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const connections = yield* Connections
      const { id, source_id } = yield* createConnection()
      const off = yield* concernedBy((command) => sources.update(team, source_id, change({ disabled: true }), command))
      expect(off.cancelled).toStrictEqual([id])
      expect((yield* connections.get(team, id)).disabled_at).not.toBe(null)
      const renamed = yield* concernedBy((command) =>
        sources.update(team, source_id, change({ description: "still off" }), command)
      )
      expect(renamed.record.disabled_at).toBe(off.record.disabled_at)
      expect(renamed.cancelled).toStrictEqual([])
      yield* sources.update(team, source_id, change({ disabled: false }))
      expect((yield* connections.get(team, id)).disabled_at).toBe(null)
    })
  )

  it.effect("Deleting a source deletes its connections", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const connections = yield* Connections
      const connection = yield* createConnection()
      expect(yield* concernedBy((command) => sources.delete(team, connection.source_id, command))).toStrictEqual({
        record: undefined,
        cancelled: [connection.id],
        destinations: [connection.destination_id]
      })
      expect((yield* Effect.flip(connections.get(team, connection.id))).code).toBe("NOT_FOUND")
      expect(yield* versionOf(connection.source_id)).toBe(3)
    })
  )

  it.effect("Every change of a source raises the version that ingress routes by", () =>
    Effect.gen(function* () {
      const sources = yield* Sources
      const { id } = yield* createSource()
      expect(yield* versionOf(id)).toBe(1)
      yield* sources.update(team, id, change({ description: "changed" }))
      expect(yield* versionOf(id)).toBe(2)
      yield* sources.switch(team, id, "disable")
      expect(yield* versionOf(id)).toBe(3)
      yield* sources.switch(team, id, "enable")
      expect(yield* versionOf(id)).toBe(4)
      yield* sources.delete(team, id)
      expect(yield* versionOf(id)).toBe(5)
    })
  )

  it.effect("A source disabled while connections are created to it leaves none in between", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const sources = yield* Sources
      const source = yield* createSource()
      const destination = yield* ControlPlane.createDestination()
      const made = yield* Effect.all(
        [
          Effect.forEach(
            Array.from({ length: 8 }),
            () => createConnection({ source_id: source.id, destination_id: destination.id }),
            { concurrency: 4 }
          ),
          sources.switch(team, source.id, "disable")
        ],
        { concurrency: "unbounded" }
      ).pipe(Effect.map(([made]) => made))
      // Each is either one that the disable found and switched off, or one that came after it and is on.
      const rows = yield* sql<{ id: string; disabled_by: string | null; off: boolean }>`
        select id, disabled_by, disabled_at is not null as off from connections where source_id = ${source.id}`
      expect(rows.length).toBe(made.length)
      for (const row of rows) expect(row.off).toBe(row.disabled_by === "source")
      expect(yield* versionOf(source.id)).toBe(1 + made.length + 1)
      yield* sources.switch(team, source.id, "enable")
      const [off] = yield* sql<{ count: number }>`
        select count(*)::int4 as count from connections where source_id = ${source.id} and disabled_at is not null`
      expect(off?.count).toBe(0)
    })
  )
})
