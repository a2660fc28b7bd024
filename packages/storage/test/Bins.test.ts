import { expect, layer } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { binLimits } from "@tidegate/model/PublicBin"
import { captureInBin } from "../src/control/BinCapture.ts"
import { claimBin } from "../src/control/BinClaim.ts"
import { createBin, type NewBin, openBin, rememberedMs } from "../src/control/Bins.ts"
import type { RequestRecord } from "../src/journal/RequestRecord.ts"
import { teamExists } from "../src/teams/People.ts"
import { openPresented, sealPresented } from "../src/secrets/PresentedColumn.ts"
import { retain, retentionDefaults } from "../src/retention/Retention.ts"
import { removeBins } from "../src/retention/RetentionBins.ts"
import { readRoutedSource } from "../src/delivery/RoutedSource.ts"
import { Secrets } from "../src/secrets/Secrets.ts"
import { Sources } from "../src/control/Sources.ts"
import { binsTeam } from "../src/teams/Teams.ts"
import * as ControlPlane from "./controlPlane.ts"
import { requestRecord } from "./requests.ts"

const { otherTeam, team } = ControlPlane

const codeOf = <A, R>(effect: Effect.Effect<A, unknown, R>) =>
  Effect.map(Effect.flip(effect), (error) => (error as { readonly code?: string }).code)

/** As of that moment (Unix ms). */
const at = <A, E, R>(ms: number, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.Clock, (clock) =>
    Effect.provideService(
      effect,
      Clock.Clock,
      Object.assign(Object.create(clock) as Clock.Clock, {
        currentTimeMillis: Effect.succeed(ms),
        currentTimeMillisUnsafe: () => ms
      })
    )
  )

const made = Effect.flatMap(createBin(1_000), (bin) =>
  bin instanceof Date ? Effect.die("there is no room for a bin") : Effect.succeed<NewBin>(bin)
)

const received = (id: string, more: Partial<RequestRecord> = {}): RequestRecord => ({
  ...requestRecord({ teamId: binsTeam, sourceId: id, ...more }, { connection: "web_1", destination: "des_1" }),
  events: []
})

/** The beginning of a minute of the clock that is to come. */
const minute = Math.ceil(Date.now() / 60_000) * 60_000

const stored = (id: string) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql<{ id: string; team_id: string; presented: string | null }>`
      select id, team_id, presented from requests where source_id = ${id} order by id`
  )

const counted = (key: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ measure: string; count: number }>`
        select measure, sum(count)::int4 as count from counted where key_id = ${key} group by measure`,
      (rows) => Object.fromEntries(rows.map((row) => [row.measure, row.count]))
    )
  )

layer(ControlPlane.layer, { excludeTestServices: true })("Public bin", (it) => {
  it.effect("A public bin opens with its token, and the token is not stored", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { expiresAt, id, token } = yield* made
      expect(token).toMatch(/^pbn_[0-9a-f]{48}$/)
      expect(yield* openBin(id, token)).toEqual({ team_id: binsTeam, expires_at: expiresAt })
      expect(yield* codeOf(openBin(id, `${token.slice(0, -1)}x`))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(openBin(id, ""))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(openBin((yield* made).id, token))).toBe("INVALID_BIN_TOKEN")
      const [row] = yield* sql`select to_jsonb(b)::text as row from public_bins b where source_id = ${id}`
      expect(String(row!["row"])).not.toContain(token.slice(4))
    })
  )

  it.effect("A public bin that nobody created is not found", () =>
    Effect.gen(function* () {
      const { id, token } = yield* made
      expect(yield* codeOf(openBin(`${id.slice(0, -2)}zz`, token))).toBe("NOT_FOUND")
      expect(yield* codeOf(openBin("src_x", token))).toBe("NOT_FOUND")
    })
  )

  it.effect("A public bin ends exactly after an hour and is forgotten a day later", () =>
    Effect.gen(function* () {
      const { expiresAt, id, token } = yield* made
      const end = expiresAt.getTime()
      yield* at(end - 1, openBin(id, token))
      expect(yield* codeOf(at(end, openBin(id, token)))).toBe("BIN_EXPIRED")
      // A caller without the bin's token gets no information about it.
      expect(yield* codeOf(at(end, openBin(id, "pbn_")))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(at(end + rememberedMs - 1, openBin(id, token)))).toBe("BIN_EXPIRED")
      expect(yield* codeOf(at(end + rememberedMs, openBin(id, token)))).toBe("NOT_FOUND")
      expect(yield* captureInBin(received(id, { ingestedAt: end - 1 }))).toEqual({ kind: "stored" })
      expect(yield* captureInBin(received(id, { ingestedAt: end }))).toEqual({ kind: "expired" })
      expect(yield* codeOf(at(end, claimBin({ id, token, team_id: team })))).toBe("BIN_EXPIRED")
    })
  )

  it.effect("A new public bin is created only while there is room, and ended bins make room", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`update public_bins set claimed_at = now()`
      const now = Date.now()
      const first = yield* at(now, createBin(2))
      yield* at(now + 600_000, createBin(2))
      expect(yield* at(now + 600_000, createBin(2))).toEqual((first as NewBin).expiresAt)
      expect(yield* at(now + 3_600_000, createBin(2))).toHaveProperty("id")
      yield* sql`update public_bins set claimed_at = now()`
    })
  )

  it.effect("Public bins belong to a team that nobody can name", () =>
    Effect.gen(function* () {
      expect(yield* teamExists(binsTeam)).toBe(false)
      expect(yield* teamExists(team)).toBe(true)
    })
  )

  it.effect("A public bin accepts sixty concurrent requests a minute and reports more as full", () =>
    Effect.gen(function* () {
      const { id } = yield* made
      const burst = (ingestedAt: number) =>
        Effect.forEach(
          Array.from({ length: binLimits.perMinute + 20 }, () => received(id, { ingestedAt })),
          captureInBin,
          { concurrency: 5 }
        )
      const first = yield* burst(minute + 59_999)
      expect(first.filter(({ kind }) => kind === "stored")).toHaveLength(binLimits.perMinute)
      expect(first.filter(({ kind }) => kind !== "stored")).toContainEqual({ kind: "full", until: minute + 60_000 })
      const second = yield* burst(minute + 60_000)
      expect(second.filter(({ kind }) => kind === "stored")).toHaveLength(binLimits.perMinute)
      expect(yield* stored(id)).toHaveLength(2 * binLimits.perMinute)
    })
  )

  it.effect("A public bin accepts five hundred requests in total", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { expiresAt, id } = yield* made
      yield* sql`update public_bins set captured = ${binLimits.requests - 3} where source_id = ${id}`
      const outcomes = yield* Effect.forEach([1, 2, 3, 4, 5, 6], () => captureInBin(received(id)), { concurrency: 6 })
      expect(outcomes.filter(({ kind }) => kind === "stored")).toHaveLength(3)
      expect(outcomes.filter(({ kind }) => kind === "full")).toEqual(
        [1, 2, 3].map(() => ({ kind: "full", until: expiresAt.getTime() }))
      )
    })
  )

  it.effect("A claimed bin becomes a source of the claiming team, with its requests, and of nobody else", () =>
    Effect.gen(function* () {
      const secrets = yield* Secrets
      const { id, token } = yield* made
      const first = newId(prefixes.request, Date.now())
      const presented = { headers: [["authorization", ["Bearer s3cret"]]], query: [["key", "k"]] } as const
      yield* captureInBin(
        received(id, { id: first, presented: sealPresented(secrets, { team_id: binsTeam, id: first }, presented) })
      )
      yield* captureInBin(received(id, { status: "rejected", rejectionCause: "PAYLOAD_TOO_LARGE", body: null }))
      expect(yield* counted(id)).toEqual({})
      const before = yield* counted(team)

      yield* claimBin({ id, token, team_id: team })

      const moved = yield* stored(id)
      expect(moved.map(({ team_id }) => team_id)).toEqual([team, team])
      const sealed = moved.find((request) => request.id === first)!.presented!
      expect(openPresented(secrets, { team_id: team, id: first }, sealed)).toEqual(presented)
      expect(openPresented(secrets, { team_id: binsTeam, id: first }, sealed)).toBe(null)
      expect(yield* counted(id)).toEqual({ accepted: 1, rejected: 1 })
      const after = yield* counted(team)
      expect([after["accepted"], after["rejected"]]).toEqual([
        (before["accepted"] ?? 0) + 1,
        (before["rejected"] ?? 0) + 1
      ])
      expect(yield* counted(binsTeam)).toEqual({})
      expect(yield* (yield* Sources).get(team, id)).toMatchObject({
        id,
        team_id: team,
        name: `bin-${id}`,
        status: "enabled"
      })
      expect(yield* readRoutedSource(id)).toMatchObject({ team_id: team, binExpiresAt: null, version: 2 })

      expect(yield* codeOf(openBin(id, token))).toBe("INVALID_BIN_TOKEN")
      expect(yield* codeOf(claimBin({ id, token, team_id: team }))).toBe("BIN_ALREADY_CLAIMED")
      expect(yield* codeOf(claimBin({ id, token, team_id: otherTeam }))).toBe("BIN_ALREADY_CLAIMED")
      expect(yield* codeOf(claimBin({ id, token: "pbn_", team_id: otherTeam }))).toBe("INVALID_BIN_TOKEN")
      expect(yield* captureInBin(received(id))).toEqual({ kind: "moved" })
    })
  )

  it.effect("Only one of several concurrent claims of a bin succeeds", () =>
    Effect.gen(function* () {
      const { id, token } = yield* made
      const tries = yield* Effect.forEach(
        [team, otherTeam, team, otherTeam],
        (team_id) => Effect.result(at(Date.now() + (team_id === team ? 1 : 2), claimBin({ id, token, team_id }))),
        { concurrency: 4 }
      )
      const won = new Set(tries.flatMap((one, index) => (one._tag === "Success" ? [index % 2] : [])))
      expect(won.size).toBe(1)
    })
  )

  it.effect("A claimed bin gets a name that is free in the team", () =>
    Effect.gen(function* () {
      const { id, token } = yield* made
      const sources = yield* Sources
      const taken = { ...ControlPlane.sourceFields(), name: `bin-${id}` }
      yield* sources.create(team, newId(prefixes.source, Date.now()), taken)
      yield* claimBin({ id, token, team_id: team })
      expect((yield* sources.get(team, id)).name).toMatch(new RegExp(`^bin-${id}-[0-9a-f]{8}$`))
    })
  )

  it.effect("A bin loses no request that arrives while it is claimed", () =>
    Effect.gen(function* () {
      const { id, token } = yield* made
      const claim = Effect.as(claimBin({ id, token, team_id: team }), { kind: "claimed" as const })
      const outcomes = yield* Effect.forEach(
        Array.from({ length: 50 }, (_, n) => (n === 25 ? claim : captureInBin(received(id, { ingestedAt: minute })))),
        (one): Effect.Effect<{ readonly kind: string }, unknown, Secrets | SqlClient.SqlClient> => one,
        { concurrency: 6 }
      )
      const kept = outcomes.filter(({ kind }) => kind === "stored")
      expect(kept.length).toBeGreaterThan(0)
      const rows = yield* stored(id)
      expect(rows).toHaveLength(kept.length)
      expect(new Set(rows.map(({ team_id }) => team_id))).toEqual(new Set([team]))
      expect(outcomes.filter(({ kind }) => kind === "moved")).toHaveLength(49 - kept.length)
    })
  )

  it.effect("An ended bin is removed after its requests, and a claimed bin stays", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const [over, claimed] = [yield* made, yield* made]
      for (const { id } of [over, claimed]) yield* captureInBin(received(id))
      yield* claimBin({ id: claimed.id, token: claimed.token, team_id: team })
      const end = over.expiresAt.getTime()
      const bins = sql`select source_id from public_bins where source_id = any(${[over.id, claimed.id]}) order by 1`

      yield* removeBins(end - 1)
      expect(yield* stored(over.id)).toHaveLength(1)
      yield* removeBins(end)
      expect(yield* stored(over.id)).toHaveLength(0)
      expect(yield* bins).toHaveLength(2)
      yield* removeBins(end + rememberedMs)
      expect(yield* bins).toEqual([{ source_id: claimed.id }])
      expect(yield* sql`select from sources where id = ${over.id}`).toHaveLength(0)
      expect(yield* stored(claimed.id)).toHaveLength(1)
    })
  )

  it.effect("Retention removes ended bins", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* made
      yield* captureInBin(received(id))
      yield* sql`update public_bins set expires_at = now() - interval '2 days' where source_id = ${id}`
      yield* retain(retentionDefaults)
      expect(yield* sql`select from public_bins where source_id = ${id}`).toHaveLength(0)
      expect(yield* stored(id)).toHaveLength(0)
    })
  )
})
