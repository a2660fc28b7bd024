import { expect, layer } from "@effect/vitest"
import { Effect, Layer, Result, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { prefixes, sibling } from "@tidegate/model/Ids"
import { beginAccountConsent } from "../src/accounts/AccountConsents.ts"
import { agreement } from "../src/Agreement.ts"
import { beginConsent, claimTokens, storeTokens } from "../src/delivery/DestinationTokens.ts"
import { requestDeletion } from "../src/deletion/DataDeletions.ts"
import { createFixture } from "../src/control/Fixtures.ts"
import { beginCall, keepAnswer } from "../src/teams/IdempotencyKeys.ts"
import { renewAll, usesOfOldKeys } from "../src/secrets/KeyRotation.ts"
import { sealPresented } from "../src/secrets/PresentedColumn.ts"
import { replaceSecrets } from "../src/teams/ProjectSecrets.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import { sealedColumns } from "../src/Tables.ts"
import { sealEnv } from "../src/control/TransformationEnv.ts"
import { readAuth, sealAuth } from "../src/secrets/AuthColumn.ts"
import { sealedColumn } from "../src/secrets/SealedColumn.ts"
import { sealSettings } from "../src/secrets/SealedSettings.ts"
import * as ControlPlane from "./controlPlane.ts"
import { idOf, makeOldDays, type OldDays, resourcesOf } from "./OldDays.ts"

const mine = "tm_mine"
const old: OldDays = {
  now: Date.now(),
  days: 2,
  teams: { [mine]: { payload: null, record: null } },
  perDay: 40,
  bodyBytes: 64
}
const requests = Array.from({ length: 40 }, (_, n) => sibling(prefixes.request, `req_${idOf(old, mine, 1, n)}`))

const ring = (text: string) => Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys(text)) })
const [before, after] = [`was:${"ab".repeat(32)}`, `next:${"cd".repeat(32)}`]
const both = `${after},${before}`
const by = <A, E, R>(keys: string, effect: Effect.Effect<A, E, R>) => Effect.provide(effect, ring(keys))
const silent = () => Effect.void

/** Something in every column that is declared to be sealed. One that is added has to be added here. */
const plant = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const { action, destination, source, transformation } = resourcesOf(mine)
  yield* agreement(32)
  for (const [table, id] of [
    ["sources", source],
    ["destinations", destination]
  ] as const) {
    yield* sql`update ${sql(table)} set auth = ${yield* sealAuth(secrets, table, { team_id: mine, id }, { api_key: id })}
      where id = ${id}`
  }
  const owner = { team_id: mine, id: destination }
  yield* claimTokens(owner, "claim", 1_000)
  yield* storeTokens(owner, "claim", { refresh: "r3fresh" })
  yield* beginConsent(owner, "state", { verifier: "v3rifier" }, new Date())
  const env = yield* sealEnv(secrets, { team_id: mine, id: transformation }, { A: "b" })
  yield* sql`update transformations set env = ${env} where id = ${transformation}`
  const credentials = sealedColumn(secrets, "actions", "credentials")
  yield* sql`
    update actions set credentials = ${yield* credentials.seal({ team_id: mine, id: action }, { token: "t" })} where id = ${action}`
  yield* replaceSecrets(mine, { signing_secret: "gws_the_first_of_two" })
  yield* replaceSecrets(mine, { signing_secret: "gws_the_second_of_two" })
  for (const id of requests) {
    const presented = { headers: [["x-key", [id]]], query: [] } as const
    yield* sql`update requests set presented = ${sealPresented(secrets, { team_id: mine, id }, presented)} where id = ${id}`
  }
  const keyed = { id: "idk_one", team_id: mine, fingerprint: "f" }
  yield* sql`delete from idempotency_keys`
  const begun = yield* beginCall(keyed)
  if (begun.kind === "begun") yield* keepAnswer(keyed, begun, 201, "a secret")
  yield* createFixture({ team_id: mine, request_id: requests[0]!, name: "f", description: null })
  for (const table of ["provider_accounts", "provider_consents", "channel_subscriptions", "channel_settings"]) {
    yield* sql`delete from ${sql(table)}`
  }
  const account = { id: "pac_one", team_id: mine }
  const ofAccount = (column: string, value: object) =>
    sealedColumn(secrets, "provider_accounts", column).seal(account, value as Schema.JsonObject)
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, credentials, held, created_at, updated_at)
    values (${account.id}, ${mine}, 'p', 'n', 'oauth2', 'https://api.example.com', ${yield* ofAccount("credentials", { client_id: "c" })},
      ${yield* ofAccount("held", { refresh: "r3fresh" })}, now(), now())`
  yield* beginAccountConsent(account, "key k", "state", { verifier: "v3rifier" }, new Date())
  const subscription = { id: "chn_one", team_id: mine }
  const ofSubscription = sealedColumn(secrets, "channel_subscriptions", "secrets").seal(subscription, {
    secret: "s3cret"
  })
  yield* sql`insert into channel_subscriptions (id, team_id, source_id, adapter, definition_key, target, token_hash, secrets, state, created_at)
    values (${subscription.id}, ${mine}, ${source}, 'watch', 'd', 't', 'h', ${yield* ofSubscription}, 'active', now())`
  const chat = { team_id: mine, table: "channel_settings", column: "chat_webhook_url", id: mine }
  yield* sql`insert into channel_settings values (${mine}, true, '{}', true, ${yield* secrets.encrypt(chat, "https://chat.example.com/s3cret")},
    null, 60, 24, true, now())`
  yield* requestDeletion({ id: "del_one", team_id: mine, text: "ada@example.com", filter: {}, by: null })
})

/** Every value that is sealed, opened in its place, by table, column and row. */
const opened = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const texts: Record<string, string> = {}
  for (const { column, of, row, table, team } of sealedColumns) {
    const rows = yield* sql<{ row: string; team_id: string; id: string; value: string }>`
      select ${sql(row)} as row, ${team === null ? sql`''` : sql(team)} as team_id, ${sql(of[1])} as id, ${sql(column)} as value
      from ${sql(table)} where ${sql(column)} like 'v_.%'`
    for (const { id, row, team_id, value } of rows) {
      const address = { team_id, table: of[0], column, id }
      const text = value.startsWith("v2")
        ? Result.getOrThrow(secrets.open(address, value))
        : yield* secrets.decrypt(address, value)
      texts[`${table}.${column} ${row}`] = text
    }
  }
  return texts
})

/** Columns in which something looks encrypted. */
const encryptedColumns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const columns = yield* sql<{ table: string; column: string }>`
    select table_name as table, column_name as column from information_schema.columns join pg_class c on c.relname = table_name
    where table_schema = 'public' and data_type in ('text', 'jsonb', 'bytea') and not c.relispartition and c.relkind in ('r', 'p')`
  const found: Array<string> = []
  for (const { column, table } of columns) {
    const [row] =
      yield* sql`select from ${sql(table)} where ${sql(column)}::text ~ '^v[12][.][A-Za-z0-9_-]{1,32}[.][A-Za-z0-9_-]{16}[.]' limit 1`
    if (row !== undefined) found.push(`${table}.${column}`)
  }
  return found
})

const keysInUse = Effect.map(usesOfOldKeys, (uses) => new Set(uses.map(({ key }) => key)))

const world = Layer.effectDiscard(makeOldDays(old)).pipe(Layer.provideMerge(ControlPlane.layer), Layer.orDie)

layer(world, { excludeTestServices: true })("Rotation of encryption keys", (it) => {
  it.effect("A rotation encrypts everything with the first key and reports the old key as unused", () =>
    Effect.gen(function* () {
      yield* by(before, plant)
      const texts = yield* by(before, opened)
      const columns = sealedColumns.map(({ column, table }) => `${table}.${column}`)
      expect(new Set(Object.keys(texts).map((key) => key.split(" ")[0]))).toEqual(new Set(columns))
      expect(new Set(yield* encryptedColumns)).toEqual(new Set(columns))
      expect(
        (yield* by(both, usesOfOldKeys)).map(({ column, isInRing, table, values }) => [
          `${table}.${column}`,
          values,
          isInRing
        ])
      ).toEqual(
        columns.map((name) => [name, Object.keys(texts).filter((key) => key.startsWith(`${name} `)).length, true])
      )

      const told: Array<number> = []
      const renewed = yield* by(
        both,
        renewAll(({ renewed }) => Effect.sync(() => void told.push(renewed)))
      )
      expect(renewed.reduce((sum, one) => sum + one.renewed, 0)).toBe(Object.keys(texts).length)
      expect(Math.max(...told)).toBe(40)
      expect(yield* by(both, usesOfOldKeys)).toEqual([])
      // Without the old key everything says what it said.
      expect(yield* by(after, opened)).toEqual(texts)
      expect((yield* by(after, agreement(32))).keysFit).toBe(true)
      expect((yield* by(before, agreement(32))).keysFit).toBe(false)
      expect((yield* by(both, renewAll(silent))).every((one) => one.renewed === 0)).toBe(true)
    })
  )

  it.effect("A rotation keeps values that were written meanwhile, and unreadable ones", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* by(before, plant)
      const [first, second, third] = requests as [string, string, string]
      yield* sql`update requests set presented = 'v2.gone.AAAAAAAAAAAAAAAA.AAAA' where id = ${first}`
      yield* sql`update requests set presented = (select presented from requests where id = ${third}) where id = ${second}`
      const { destination } = resourcesOf(mine)
      const place = { team_id: mine, id: destination }
      const mineNow = yield* by(
        both,
        Effect.flatMap(Secrets, (secrets) => sealAuth(secrets, "destinations", place, { api_key: "written meanwhile" }))
      )
      // Somebody writes it when it has been read, and is about to be written.
      const meanwhile = Layer.effect(
        Secrets,
        Effect.map(Secrets, (secrets) => ({
          ...secrets,
          renew: (address: Parameters<typeof secrets.renew>[0], value: string) => {
            if (address.id !== destination) return secrets.renew(address, value)
            overtake = true
            return secrets.renew(address, value)
          }
        }))
      ).pipe(Layer.provide(ring(both)))
      let overtake = false
      yield* Effect.provide(
        renewAll(silent).pipe(
          Effect.provideService(
            SqlClient.SqlClient,
            new Proxy(sql, {
              apply: (target, self, args: Array<unknown>) => {
                if (overtake && String(args[0]).includes("update")) {
                  overtake = false
                  return Effect.andThen(
                    sql`update destinations set auth = ${mineNow} where id = ${destination}`,
                    Reflect.apply(target, self, args) as Effect.Effect<unknown>
                  )
                }
                return Reflect.apply(target, self, args) as unknown
              }
            })
          )
        ),
        meanwhile
      )
      const [row] = yield* sql<{ auth: string }>`select auth from destinations where id = ${destination}`
      expect(row?.auth).toBe(mineNow)
      expect(yield* by(both, keysInUse)).toEqual(new Set(["gone", "was"]))
      const [lost] = yield* by(both, usesOfOldKeys)
      expect(lost).toEqual({ table: "requests", column: "presented", key: "gone", isInRing: false, values: 1 })
      const unread = yield* by(both, renewAll(silent))
      expect(unread.find(({ table }) => table === "requests")).toEqual({
        table: "requests",
        column: "presented",
        renewed: 0,
        unreadable: 2
      })
    })
  )

  it.effect("Settings stored before they were secrets are encrypted once", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { destination } = resourcesOf(mine)
      const config = {
        url: "https://chat.example.com/api/webhooks/1/t0ken-of-it",
        content_template: "x",
        auth_type: "NO_AUTH"
      }
      yield* sql`update destinations set type = 'CHAT_WEBHOOK', config = ${JSON.stringify(config)}::jsonb, auth = null where id = ${destination}`
      expect(yield* by(after, sealSettings)).toBe(1)
      const [row] = yield* sql<{
        config: object
        auth: string
      }>`select config, auth from destinations where id = ${destination}`
      expect(row!.config).toEqual({ content_template: "x", auth_type: "NO_AUTH" })
      const place = { team_id: mine, id: destination, auth: row!.auth }
      const auth = yield* by(
        after,
        Effect.flatMap(Secrets, (secrets) => readAuth(secrets, "destinations", place))
      )
      expect(auth).toEqual({ settings: { url: config.url } })
      expect(yield* by(after, sealSettings)).toBe(0)
    })
  )

  it.effect("Encryption for an undeclared column is rejected, so the rotation covers all columns", () =>
    Effect.gen(function* () {
      const { encrypt, seal } = yield* Secrets
      const place = { team_id: mine, table: "events", column: "secret", id: "evt_1" }
      expect(() => seal(place, "x")).toThrow("events.secret is not declared to be sealed")
      expect(
        String(yield* Effect.sandbox(Effect.flip(Effect.sandbox(encrypt(place, "x")))).pipe(Effect.orDie))
      ).toContain("not declared")
    })
  )
})
