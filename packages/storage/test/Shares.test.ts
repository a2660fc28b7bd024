import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { retain } from "../src/retention/Retention.ts"
import { hashToken } from "../src/secrets/Secrets.ts"
import { listShares, maxShares, openShare, revokeShare, revokeShares, share } from "../src/control/Shares.ts"
import { atOnce, codeOf, mine, other, requestOf, world } from "./twoTeams.ts"

const shared = (day = 0) =>
  share(
    {
      team_id: mine,
      request_id: requestOf(mine, day),
      title: "t",
      expiresAt: new Date(Date.now() + 60_000),
      secretNames: [],
      includeBody: true
    },
    (token) => `http://gateway.test/${token}`
  )

layer(world, { excludeTestServices: true })("Share", (it) => {
  it.effect("A share shows the redacted request, counts its readers and hides its token", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const made = yield* shared()
      expect(made).toMatchObject({ url: `http://gateway.test/${made.token}`, title: "t", access_count: 0 })
      const opened = yield* openShare(made.token)
      expect(opened).toEqual({
        title: "t",
        expires_at: made.expires_at,
        created_at: made.created_at,
        sanitized: true,
        request: made.request
      })
      const before = new Date()
      yield* openShare(made.token)
      const [row] = yield* sql<{ last_accessed_at: Date }>`select * from request_shares where id = ${made.id}`
      expect(row!.last_accessed_at.getTime()).toBeGreaterThanOrEqual(before.getTime())
      expect(row).toMatchObject({ access_count: 2n, token_hash: hashToken(made.token) })
      expect(JSON.stringify({ ...row, access_count: 0 })).not.toContain(made.token)
    })
  )

  it.effect("A revoked share ends and forgets its content", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id, request_id, token } = yield* shared()
      expect(yield* codeOf(revokeShare(other, request_id, id))).toBe("NOT_FOUND")
      expect(yield* codeOf(revokeShare(mine, requestOf(mine, 1), id))).toBe("NOT_FOUND")
      expect((yield* openShare(token)).title).toBe("t")
      const revoked = sql`select revoked_at, snapshot from request_shares where id = ${id}`
      expect(yield* revoked).toEqual([{ revoked_at: null, snapshot: expect.any(String) }])
      yield* revokeShare(mine, request_id, id)
      const first = yield* revoked
      expect(first).toEqual([{ revoked_at: expect.any(Date), snapshot: null }])
      // It was revoked when it first was.
      yield* revokeShare(mine, request_id, id)
      expect(yield* revoked).toEqual(first)
      expect(yield* codeOf(openShare(token))).toBe("SHARE_REVOKED")
    })
  )

  it.effect("All shares of a request can be revoked, and stay listed until they are forgotten", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from request_shares where team_id = ${mine}`
      const made = yield* Effect.forEach([1, 1, 2], (day) => shared(day))
      const request = requestOf(mine, 1)
      const listed = Effect.map(
        listShares(mine, { requests: [], statuses: [] }, { key: "k", cursor: undefined, limit: 10 }),
        ({ models }) => models.map(({ id, status }) => [id, status])
      )
      expect(yield* codeOf(revokeShares(other, request))).toBe("NOT_FOUND")
      expect((yield* listed).map(([, status]) => status)).toEqual(["active", "active", "active"])
      expect(yield* revokeShares(mine, request)).toBe(2)
      expect(yield* revokeShares(mine, request)).toBe(0)
      expect(yield* sql`select from request_shares where request_id = ${request} and snapshot is not null`).toEqual([])
      expect((yield* openShare(made[2]!.token)).title).toBe("t")
      yield* sql`update request_shares set expires_at = now() - interval '1 second' where id = ${made[2]!.id}`
      yield* sql`update request_shares set forgotten_at = now() - interval '1 second' where id = ${made[0]!.id}`
      expect(new Map((yield* listed).map(([id, status]) => [id, status]))).toEqual(
        new Map([
          [made[1]!.id, "revoked"],
          [made[2]!.id, "expired"]
        ])
      )
    })
  )

  it.effect("A share expires at its time, reports that for a while, and is then deleted", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id, token } = yield* shared()
      yield* sql`update request_shares set expires_at = now() - interval '1 second' where id = ${id}`
      expect(yield* codeOf(openShare(token))).toBe("SHARE_EXPIRED")
      yield* sql`update request_shares set forgotten_at = now() - interval '2 days' where id = ${id}`
      expect(yield* codeOf(openShare(token))).toBe("SHARE_NOT_FOUND")
      yield* retain({ payloadDays: 30, recordDays: 90 })
      expect(yield* sql`select from request_shares where id = ${id}`).toEqual([])
    })
  )

  it.effect("No share exists for an unknown token or a request of another team", () =>
    Effect.gen(function* () {
      for (const token of [`rsh_${"0".repeat(48)}`, "rsh_", "", "rsh_' or 1=1", `RSH_${"0".repeat(48)}`]) {
        expect(yield* codeOf(openShare(token))).toBe("SHARE_NOT_FOUND")
      }
      const theirs = { title: null, expiresAt: new Date(), secretNames: [], includeBody: true }
      const made = share({ ...theirs, team_id: mine, request_id: requestOf(other) }, String)
      expect(yield* codeOf(made)).toBe("NOT_FOUND")
    })
  )

  it.effect("A share outlives its original request", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { request, request_id, token } = yield* shared(2)
      yield* retain({ payloadDays: 1, recordDays: 1 })
      expect(yield* sql`select from requests where id = ${request_id}`).toEqual([])
      expect((yield* openShare(token)).request).toEqual(request)
    })
  )

  it.effect("The number of shares of a team is limited, even in concurrent creations", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id } = yield* shared()
      const [{ count }] = (yield* sql<{ count: number }>`
        select count(*)::int as count from request_shares where team_id = ${mine}`) as [{ count: number }]
      yield* sql`insert into request_shares select (json_populate_record(s, json_build_object('id', 'shr_' || n, 'token_hash', n::text))).*
        from request_shares s, generate_series(1, ${maxShares - count - 2}::int) n where s.id = ${id}`
      expect(yield* atOnce(Array.from({ length: 6 }, () => shared()))).toEqual({
        made: 2,
        codes: ["TEAM_LIMIT_REACHED"]
      })
      expect(yield* codeOf(shared())).toBe("TEAM_LIMIT_REACHED")
      yield* sql`delete from request_shares where team_id = ${mine}`
    })
  )
})
