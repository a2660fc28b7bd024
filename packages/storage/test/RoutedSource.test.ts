import { randomBytes } from "node:crypto"
import { layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { expect } from "vitest"
import { newId, prefixes } from "@tidegate/model/Ids"
import { readRoutedSource, weighRoutedSource } from "../src/delivery/RoutedSource.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import * as ControlPlane from "./controlPlane.ts"

const { createConnection, createDestination, createSource, sourceFields } = ControlPlane

layer(ControlPlane.layer, { excludeTestServices: true })("Source as read for routing", (it) => {
  it.effect("A source is found by its id and by its slug only", () =>
    Effect.gen(function* () {
      const { id } = yield* createSource({ slug: "shop-floor" })
      const byId = yield* readRoutedSource(id)
      expect(byId).toMatchObject({
        id,
        team_id: ControlPlane.team,
        slug: "shop-floor",
        disabled: false,
        connections: []
      })
      expect(yield* readRoutedSource("shop-floor")).toEqual(byId)
      expect(yield* readRoutedSource("shop-roof")).toBeNull()
      expect(yield* readRoutedSource(newId(prefixes.source, Date.now()))).toBeNull()
    })
  )

  it.effect("A source is read with its enabled connections to enabled destinations", () =>
    Effect.gen(function* () {
      const now = new Date()
      const { id: source_id } = yield* createSource()
      const rules = [{ type: "delay" as const, delay: 1_000 }]
      const open = yield* createConnection({ source_id, rules })
      yield* createConnection({ source_id, disabled_at: now })
      const off = yield* createDestination()
      yield* createConnection({ source_id, destination_id: off.id })
      const sql = yield* SqlClient.SqlClient
      yield* sql`update destinations set disabled_at = ${now} where id = ${off.id}`
      const source = yield* readRoutedSource(source_id)
      expect(source?.connections).toEqual([
        {
          id: open.id,
          destination_id: open.destination_id,
          destination_type: "HTTP",
          rules,
          ordering: null,
          follows: false
        }
      ])
      expect(source?.version).toBeGreaterThan(1)
    })
  )

  it.effect(
    "The rules of a source are read up to some megabytes, and connections beyond them decide by themselves",
    () =>
      Effect.gen(function* () {
        const { id: source_id } = yield* createSource()
        const large = [{ type: "filter" as const, body: { a: { $in: [randomBytes(900_000).toString("hex")] } } }]
        const made = []
        for (let i = 0; i < 4; i++) made.push(yield* createConnection({ source_id, rules: i === 0 ? [] : large }))
        expect((yield* weighRoutedSource(source_id))?.isLight).toBe(false)
        const source = yield* readRoutedSource(source_id)
        const read = new Map(source?.connections.map(({ id, rules }) => [id, rules]))
        expect(made.map(({ id }) => read.get(id)?.length ?? null)).toEqual([0, 1, 1, null])
      })
  )

  it.effect("Unreadable verification settings are reported, so that ingress can reject requests", () =>
    Effect.gen(function* () {
      const auth = { header_key: "x-signature", webhook_secret_key: "a-long-secret" }
      const config = { ...sourceFields().config, auth_type: "HMAC" as const }
      const { id } = yield* createSource({ config, auth })
      const read = Effect.map(readRoutedSource(id), (source) => source!.auth)
      expect(yield* read).toEqual(Result.succeed(auth))

      const otherKeys = Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("cd".repeat(32))) })
      expect(Result.isFailure(yield* Effect.provide(read, otherKeys))).toBe(true)

      const sql = yield* SqlClient.SqlClient
      yield* sql`update sources set auth = null where id = ${id}`
      expect(yield* read).toEqual(Result.succeed({}))
    })
  )
})
