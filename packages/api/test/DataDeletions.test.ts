import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { advanceDataDeletion, DataDeletionPace } from "@tidegate/storage/deletion/DataRemoval"
import { beginDataRemoval } from "@tidegate/storage/deletion/Stopping"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { call, layer as server, teams } from "./ControlServer.ts"

/** Deletions of data, by the API. */

const person = Effect.fnUntraced(function* (role: "owner" | "member") {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.user, Date.now())
  const token = `ses_${randomBytes(32).toString("hex")}`
  yield* sql`insert into users (id, issuer, subject, created_at, updated_at) values (${id}, 'i', ${id}, now(), now())`
  yield* sql`insert into memberships values (${teams.a.id}, ${id}, ${role}, now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${teams.a.id}, now(), now() + interval '1 hour')`
  return { id, token }
})

/** Goes on until there is nothing to do. */
const carryOut = Effect.fnUntraced(function* (id: string) {
  for (;;) {
    const next = yield* advanceDataDeletion(id)
    if (next === "at rest") return
    if (next === "to be stopped") yield* beginDataRemoval(id)
  }
})

layer(server, { excludeTestServices: true })("Deletion of data by the API", (it) => {
  it.effect("A deletion is for owners: it is planned, confirmed, and told as a proof without the text", () =>
    Effect.gen(function* () {
      const owner = yield* person("owner")
      const member = yield* person("member")
      const text = "ada@example.com"
      const asked = yield* call("POST", "/data-deletions", { key: owner.token, body: { text } })
      expect([asked.status, asked.body]).toEqual([
        201,
        expect.objectContaining({
          stage: "searching",
          requested_by: owner.id,
          planned: {},
          confirmed_at: null,
          cancelable: true
        })
      ])
      const path = `/data-deletions/${asked.body.id}`
      for (const [method, at] of [
        ["GET", "/data-deletions"],
        ["GET", path],
        ["POST", `${path}/run`],
        ["POST", `${path}/cancel`]
      ] as const) {
        expect((yield* call(method, at, { key: member.token })).body.code).toBe("ROLE_REQUIRED")
        if (at !== "/data-deletions") expect((yield* call(method, at, { key: teams.b.key })).status).toBe(404)
      }
      expect((yield* call("GET", "/data-deletions", { key: teams.b.key })).body.data).toEqual([])
      expect((yield* call("POST", "/data-deletions", { body: { text } })).body.code).toBe("TEAM_LIMIT_REACHED")
      expect((yield* call("POST", `${path}/run`)).body.code).toBe("BULK_OPERATION_NOT_RUNNABLE")
      yield* carryOut(asked.body.id)
      expect((yield* call("GET", path)).body).toMatchObject({ stage: "planned", planned_total: 0 })
      const run = yield* call("POST", `${path}/run`)
      expect([run.status, run.body.stage]).toEqual([200, "searching"])
      expect(run.body.confirmed_by).toMatch(/^pak_/)
      yield* carryOut(asked.body.id)
      const proof = (yield* call("GET", path)).body
      expect(proof).toMatchObject({ stage: "done", error: null, cancelable: false, finished_at: expect.any(String) })
      expect((yield* call("GET", "/data-deletions")).body.data).toEqual([proof])
      expect(JSON.stringify(proof)).not.toContain(text)
      expect((yield* call("POST", `${path}/cancel`)).body.code).toBe("BULK_OPERATION_NOT_CANCELABLE")

      const source_id = ["src_1"]
      const filtered = yield* call("POST", "/data-deletions", {
        body: { source_id, status: "rejected", verified: false, from: "2026-01-01", to: "2026-01-02T00:00:00Z" }
      })
      const filter = {
        source_id,
        status: "rejected",
        verified: false,
        from: "2026-01-01T00:00:00.000Z",
        to: "2026-01-02T00:00:00.000Z"
      }
      expect(filtered.body).toMatchObject({ filter, text_hash: null })
      const cancelled = yield* call("POST", `/data-deletions/${filtered.body.id}/cancel`)
      expect([cancelled.status, cancelled.body.stage, cancelled.body.deleted]).toEqual([200, "cancelled", {}])
    }).pipe(
      Effect.provideService(DataDeletionPace, { rows: 100, bytes: 100_000, quietMs: 0, planMs: 60_000, targets: 100 })
    )
  )

  it.effect(
    "A deletion that would delete everything, or whose text is too short, too long or blank at an end, is refused",
    () =>
      Effect.gen(function* () {
        const fieldOf = (body: object) =>
          Effect.map(call("POST", "/data-deletions", { body }), ({ body, status }) => [
            status,
            body.data?.fields?.map(({ path }: { path: string }) => path) ?? body.code
          ])
        expect(yield* fieldOf({})).toEqual([400, ["text"]])
        for (const text of ["ab", "x".repeat(201), " ada@example.com", "a\u0000bc", 7]) {
          expect(yield* fieldOf({ text })).toEqual([400, ["text"]])
        }
        expect(yield* fieldOf({ text: "ada@example.com", status: "accepted" })).toEqual([400, ["status"]])
        expect(yield* fieldOf({ source_id: [] })).toEqual([400, ["source_id"]])
        expect(yield* fieldOf({ from: "soon" })).toEqual([400, ["from"]])
        expect((yield* fieldOf({ from: "now", to: "now-1d" }))[1]).toBe("INVALID_TIME_RANGE")
      })
  )
})
