import { expect, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import { SqlClient } from "effect/sql"
import { cutOver, shadowDenials } from "../src/teams/KeyCutover.ts"
import { usesOfOldKeys } from "../src/secrets/KeyRotation.ts"
import { renewPepper } from "../src/teams/KeyPeppers.ts"
import { projectKeysByText, teamKeysByText } from "../src/secrets/KeysInUse.ts"
import {
  createKey,
  getKey,
  listKeys,
  revokeKey,
  teamKeyId,
  updateKey,
  usesOfPeppers
} from "../src/teams/ProjectKeys.ts"
import { readDecisions, writeDecisions } from "../src/teams/KeyAudit.ts"
import { parseSecretKeys, Secrets } from "../src/secrets/Secrets.ts"
import { replaceSecrets } from "../src/teams/ProjectSecrets.ts"
import * as ControlPlane from "./controlPlane.ts"

const policy = {
  name: "ci",
  scopes: ["control:read"],
  execute_grants: [],
  rate_limit_per_minute: 240,
  expires_at: null
} as const

const team = ControlPlane.team

/** Keys of another ring, with that of the suite behind it. */
const renewedRing = Secrets.layer({
  keys: Result.getOrThrow(parseSecretKeys(`new:${"cd".repeat(32)},old:${"ab".repeat(32)}`))
})

layer(ControlPlane.layer, { excludeTestServices: true })("Project keys", (it) => {
  it.effect("A project key is found only by its text, of which the database stores an HMAC", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const find = yield* projectKeysByText
      const { api_key, key } = yield* createKey(team, policy, null)
      expect(yield* find(api_key)).toEqual({
        status: "active",
        expiresAt: null,
        key: {
          id: key.id,
          team,
          isTeamKey: false,
          scopes: ["control:read"],
          grants: [],
          perMinute: 240,
          isEnforced: true
        }
      })
      const [row] = yield* sql<{
        text: string
      }>`select row_to_json(k)::text as text from project_api_keys k where id = ${key.id}`
      expect(row!.text).not.toContain(api_key.slice(13))
      // The right look-up, and another key.
      const another = (yield* createKey(team, policy, null)).api_key
      yield* sql`update project_api_keys set lookup = 'elsewher' where lookup = ${another.slice(4, 12)}`
      yield* sql`update project_api_keys set lookup = ${another.slice(4, 12)} where id = ${key.id}`
      expect(yield* find(another)).toBe(null)
      yield* sql`update project_api_keys set lookup = ${api_key.slice(4, 12)} where id = ${key.id}`
      expect((yield* find(api_key))?.status).toBe("active")
    })
  )

  it.effect("A project key uses the newest pepper at its creation, in every process", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const find = yield* projectKeysByText
      const before = yield* createKey(team, policy, null)
      const version = yield* renewPepper
      const after = yield* createKey(team, policy, null)
      for (const { api_key, key } of [before, after]) expect((yield* find(api_key))?.key.id).toBe(key.id)
      const peppers = yield* sql<{ pepper: number }>`select pepper from project_api_keys
        where id in (${before.key.id}, ${after.key.id}) order by pepper`
      expect(peppers.map(({ pepper }) => pepper)).toEqual([version - 1, version])
      expect((yield* usesOfPeppers).map(({ pepper }) => pepper)).toEqual([version, version - 1])
      const stored = yield* sql<{ value: string }>`select value from settings where starts_with(name, 'key_pepper.')`
      expect(stored).toHaveLength(version)
      for (const { value } of stored) expect(value).toMatch(/^v1\./)
    })
  )

  it.effect("Project keys stay valid when the encryption keys change and the peppers are encrypted again", () =>
    Effect.gen(function* () {
      const { api_key, key } = yield* createKey(team, policy, null)
      const found = yield* Effect.provide(
        Effect.gen(function* () {
          const uses = yield* usesOfOldKeys
          expect(uses.some(({ table }) => table === "settings")).toBe(true)
          return yield* (yield* projectKeysByText)(api_key)
        }),
        renewedRing
      )
      expect(found?.key.id).toBe(key.id)
    })
  )

  it.effect("A project key is rejected if its pepper cannot be read", () =>
    Effect.gen(function* () {
      const { api_key } = yield* createKey(team, policy, null)
      const ring = Secrets.layer({ keys: Result.getOrThrow(parseSecretKeys("ef".repeat(32))) })
      expect(
        yield* Effect.provide(
          Effect.flatMap(projectKeysByText, (find) => find(api_key)),
          ring
        )
      ).toBe(null)
    })
  )

  it.effect("Only the newest thousand revoked keys are kept, and other keys stay", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { key } = yield* createKey(ControlPlane.otherTeam, policy, null)
      yield* sql`insert into project_api_keys (id, team_id, name, lookup, key_hmac, pepper, status, scopes, execute_grants,
          rate_limit_per_minute, revoked_at, created_at, updated_at)
        select 'pak_' || n, ${ControlPlane.otherTeam}, 'old', n, '', 1, 'revoked', '{}', '{}', 1, now() - make_interval(mins => n), now(), now()
        from generate_series(1, 1100) n`
      yield* createKey(ControlPlane.otherTeam, policy, null)
      const [{ revoked }] = (yield* sql<{ revoked: number }>`select count(*)::int as revoked from project_api_keys
        where team_id = ${ControlPlane.otherTeam} and status = 'revoked'`) as [{ revoked: number }]
      expect(revoked).toBe(1_000)
      const listed = yield* listKeys(ControlPlane.otherTeam)
      expect(listed).toHaveLength(100)
      expect(listed.slice(0, 2).map(({ status }) => status)).toEqual(["active", "active"])
      expect(listed.some(({ id }) => id === key.id)).toBe(true)
    })
  )

  it.effect("A key that is changed and revoked at the same time ends as revoked", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 20; round++) {
        const { key } = yield* createKey(ControlPlane.otherTeam, policy, null)
        const disable = updateKey(ControlPlane.otherTeam, key.id, (stored) =>
          Effect.succeed({ ...stored, status: "disabled" as const })
        )
        yield* Effect.all([Effect.exit(disable), revokeKey(ControlPlane.otherTeam, key.id)], {
          concurrency: "unbounded"
        })
        expect((yield* getKey(ControlPlane.otherTeam, key.id)).status).toBe("revoked")
      }
    })
  )

  it.effect("A team's own API key is listed as a project key with all rights", () =>
    Effect.gen(function* () {
      const find = yield* teamKeysByText
      yield* replaceSecrets(team, { api_key: "a key of my own" })
      const unseen = yield* find("a key of my own")
      expect(unseen).toMatchObject({ status: "active", key: { id: teamKeyId(team), grants: null, isEnforced: true } })
      expect((yield* listKeys(team)).find(({ id }) => id === teamKeyId(team))).toMatchObject({
        legacy_project_secret: true,
        masked_key: "**** own"
      })
      expect(yield* find("a key of my own")).toEqual(unseen)
      yield* revokeKey(team, teamKeyId(team))
      expect((yield* find("a key of my own"))?.status).toBe("revoked")
      yield* replaceSecrets(team, { api_key: "another of my own" })
      expect((yield* find("another of my own"))?.status).toBe("active")
    })
  )
})

layer(ControlPlane.layer, { excludeTestServices: true })("Decisions about project keys", (it) => {
  const counted = {
    entry: "00000000-0000-4000-8000-000000000001",
    team_id: team,
    key_id: "pak_1",
    route_key: "GET:/v1/sources",
    permission: "read",
    decision: "allowed",
    reason: null,
    isUse: true,
    beganAt: Date.UTC(2026, 0, 1),
    firstAt: Date.UTC(2026, 0, 1, 0, 1),
    lastAt: Date.UTC(2026, 0, 1, 0, 2),
    count: 3
  } as const

  it.effect("Decisions are added up over processes, and a repeated write changes nothing", () =>
    Effect.gen(function* () {
      const later = { ...counted, count: 5, lastAt: counted.lastAt + 1_000 }
      const elsewhere = {
        ...counted,
        entry: counted.entry.replace(/1$/, "2"),
        count: 40,
        firstAt: counted.firstAt - 1_000
      }
      const denied = {
        ...counted,
        entry: counted.entry.replace(/1$/, "3"),
        decision: "denied" as const,
        reason: "grant_missing" as const,
        lastAt: counted.lastAt + 9_000
      }
      yield* writeDecisions([counted])
      yield* writeDecisions([later, elsewhere, denied])
      yield* writeDecisions([later, elsewhere])
      // An older one, whose answer was late.
      yield* writeDecisions([counted])
      const rows = yield* readDecisions(team, "pak_1")
      expect(rows).toMatchObject([
        { decision: "denied", reason: "grant_missing", count: 3, permission: "read" },
        {
          id: expect.any(Number),
          key_id: "pak_1",
          team_id: team,
          decision: "allowed",
          reason: null,
          count: 45,
          first_seen_at: "2026-01-01T00:00:59.000Z",
          last_seen_at: "2026-01-01T00:02:01.000Z"
        }
      ])
      expect(yield* readDecisions(ControlPlane.otherTeam, "pak_1")).toEqual([])
    })
  )

  it.effect("Decisions of many time windows are read from the latest to the oldest", () =>
    Effect.gen(function* () {
      yield* writeDecisions(
        Array.from({ length: 150 }, (_, n) => ({
          ...counted,
          key_id: "pak_2",
          entry: counted.entry.slice(0, -4) + String(1_000 + n),
          beganAt: counted.beganAt + n * 300_000,
          firstAt: counted.beganAt + n * 300_000,
          lastAt: counted.beganAt + n * 300_000 + 1
        }))
      )
      const rows = yield* readDecisions(team, "pak_2")
      expect(rows).toHaveLength(100)
      expect(rows[0]!.first_seen_at).toBe(new Date(counted.beganAt + 149 * 300_000).toISOString())
    })
  )

  it.effect("An allowed decision updates the last use of its key at most once a minute", () =>
    Effect.gen(function* () {
      const { key } = yield* createKey(team, policy, null)
      const used = Effect.map(getKey(team, key.id), ({ last_used_at }) => last_used_at)
      const at = (lastAt: number, decision: "allowed" | "denied", entry: string) =>
        writeDecisions([
          {
            ...counted,
            key_id: key.id,
            entry: counted.entry.replace(/1$/, entry),
            lastAt,
            decision,
            isUse: decision === "allowed"
          }
        ])
      yield* at(counted.lastAt, "denied", "5")
      expect(yield* used).toBe(null)
      yield* at(counted.lastAt, "allowed", "6")
      expect(yield* used).toBe("2026-01-01T00:02:00.000Z")
      yield* at(counted.lastAt + 59_000, "allowed", "6")
      expect(yield* used).toBe("2026-01-01T00:02:00.000Z")
      yield* at(counted.lastAt + 60_000, "allowed", "6")
      expect(yield* used).toBe("2026-01-01T00:03:00.000Z")
    })
  )

  it.effect("A decision for a team's own key updates its last use, even without an earlier read", () =>
    Effect.gen(function* () {
      const other = ControlPlane.otherTeam
      yield* replaceSecrets(other, { api_key: "a key of its own" })
      const own = { ...counted, team_id: other, key_id: teamKeyId(other) }
      yield* writeDecisions([
        { ...own, entry: counted.entry.replace(/1$/, "a") },
        {
          ...own,
          entry: counted.entry.replace(/1$/, "b"),
          decision: "denied",
          reason: "session_required",
          isUse: false,
          lastAt: counted.lastAt + 1_000
        }
      ])
      expect(yield* listKeys(other)).toMatchObject([{ last_used_at: "2026-01-01T00:02:00.000Z" }])
    })
  )

  it.effect("Recorded denials prevent the cut-over of a team, unless it is forced", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const pending = sql<{ id: string }>`select id from teams where key_policy_cutover = 'pending' order by id`
      expect(yield* pending).toEqual([])
      yield* sql`update teams set key_policy_cutover = 'pending' where id in (${team}, ${ControlPlane.otherTeam})`
      const denied = { ...counted, decision: "denied" as const, reason: "legacy_shadow_denied" as const }
      const at = (lastAt: number, entry: string) =>
        writeDecisions([
          { ...denied, key_id: teamKeyId(team), entry: counted.entry.replace(/1$/, entry), lastAt, count: 2 }
        ])
      const day = 86_400_000
      yield* at(Date.now() - 8 * day, "7")
      expect(yield* shadowDenials(7)).toEqual([])
      yield* at(Date.now() - 6 * day, "8")
      yield* at(Date.now(), "9")
      expect(yield* shadowDenials(7)).toEqual([{ team_id: team, route_key: "GET:/v1/sources", count: 4 }])
      expect(yield* cutOver([team])).toEqual([ControlPlane.otherTeam])
      expect(yield* pending).toEqual([{ id: team }])
      expect(yield* cutOver([])).toEqual([team])
      expect(yield* cutOver([])).toEqual([])
      expect(yield* shadowDenials(7)).toEqual([])
    })
  )
})
