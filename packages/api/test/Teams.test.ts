import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { signIn } from "@tidegate/storage/teams/People"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { SignInSettings } from "../src/SignInSettings.ts"
import { call, layer as server, teams } from "./ControlServer.ts"

/** Teams, their members and for how long their data is kept, by the API. */

const issuer = "https://issuer.test"
const admin = "root@example.com"

const world = server.pipe(
  Layer.provide(
    Layer.effect(
      SignInSettings,
      Effect.map(SignInSettings, (settings) => ({
        ...settings,
        siteAdmins: new Set([admin]),
        issuer: { issuer, audience: "a" }
      }))
    )
  )
)

let people = 0

/** Somebody who is signed in, and what they are to team A. */
const somebody = Effect.fnUntraced(function* (role: "owner" | "member" | null, email = `p${++people}@example.com`) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.user, Date.now())
  const token = `ses_${randomBytes(32).toString("hex")}`
  yield* sql`insert into users (id, issuer, subject, email, email_verified, name, created_at, updated_at)
    values (${id}, ${issuer}, ${id}, ${email}, true, 'Ada', now(), now())`
  if (role !== null) yield* sql`insert into memberships values (${teams.a.id}, ${id}, ${role}, now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${teams.a.id}, now(), now() + interval '1 hour')`
  return { id, token, email }
})

const alone = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`delete from memberships where team_id = ${teams.a.id}`
})

layer(world, { excludeTestServices: true })("Teams and members", (it) => {
  it.effect("Team shows its name and retention and can change them within the operator's limits", () =>
    Effect.gen(function* () {
      const { body } = yield* call("GET", "/team")
      expect(body).toMatchObject({
        id: teams.a.id,
        name: teams.a.id,
        retention: { payload_days: 30, record_days: 90, most_payload_days: 30, most_record_days: 90 },
        on_failure_workflow_id: null
      })
      const patch = (change: object) => call("PATCH", "/team", { body: change })
      expect((yield* patch({ name: "  Engines " })).body.name).toBe("Engines")
      const shorter = yield* patch({ retention: { payload_days: 7 } })
      expect(shorter.body).toMatchObject({ name: "Engines", retention: { payload_days: 7, record_days: 90 } })
      // What was read may be written back.
      expect((yield* patch(shorter.body)).body).toEqual(shorter.body)
      expect((yield* patch({ retention: { record_days: 7 } })).body.retention).toMatchObject({
        payload_days: 7,
        record_days: 7
      })
      for (const [retention, path] of [
        [{ payload_days: 31 }, "retention.payload_days"],
        [{ record_days: 91 }, "retention.record_days"],
        [{ payload_days: 8 }, "retention.payload_days"],
        [{ record_days: 6 }, "retention.payload_days"],
        [{ payload_days: 0 }, "retention.payload_days"],
        [{ payload_days: 1.5 }, "retention.payload_days"],
        [{ payloads: 7 }, "retention.payloads"]
      ] as const) {
        const answer = yield* patch({ retention })
        expect([retention, answer.status, answer.body.data?.fields?.[0]?.path]).toEqual([retention, 400, path])
      }
      const back = yield* patch({ retention: { payload_days: null, record_days: null } })
      expect(back.body.retention).toMatchObject({ payload_days: 30, record_days: 90 })
      expect((yield* call("GET", "/team", { key: teams.b.key })).body).toMatchObject({
        id: teams.b.id,
        name: teams.b.id
      })
    })
  )

  it.effect("Team is listed to its members and created by site admins", () =>
    Effect.gen(function* () {
      yield* alone
      const owner = yield* somebody("owner")
      const root = yield* somebody(null, admin)
      const mine = yield* call("GET", "/teams", { key: owner.token })
      expect(mine.body.data).toEqual([{ id: teams.a.id, name: expect.any(String), role: "owner" }])
      const refused = yield* call("POST", "/teams", { key: owner.token, body: { name: "Mine" } })
      expect([refused.status, refused.body.code]).toEqual([403, "ROLE_REQUIRED"])
      const made = yield* call("POST", "/teams", { key: root.token, body: { name: "Payments", owner: owner.email } })
      expect([made.status, made.body.name, made.body.members]).toEqual([201, "Payments", 1])
      expect(
        (yield* call("GET", "/teams", { key: owner.token })).body.data.map(({ name }: { name: string }) => name)
      ).toContain("Payments")
      const own = yield* call("POST", "/teams", { key: root.token, body: { name: "Own" } })
      const members = yield* call("GET", "/team/members", { key: root.token, headers: { "x-team-id": own.body.id } })
      expect(members.body.data).toMatchObject([{ id: root.id, email: admin, role: "owner", expected: false }])
    })
  )

  it.effect("Team adds members by email address, who get access when they sign in", () =>
    Effect.gen(function* () {
      yield* alone
      const owner = yield* somebody("owner")
      const as = { key: owner.token }
      const added = yield* call("POST", "/team/members", { ...as, body: { email: "Grace@example.com" } })
      expect([added.status, added.body]).toEqual([
        200,
        expect.objectContaining({ email: "grace@example.com", role: "member", expected: true, name: null })
      ])
      const again = yield* call("POST", "/team/members", { ...as, body: { email: "grace@example.com", role: "owner" } })
      expect([again.body.id, again.body.role]).toEqual([added.body.id, "owner"])
      const grace = yield* signIn(
        {
          issuer,
          subject: "grace",
          email: "grace@example.com",
          email_verified: true,
          name: "Grace",
          picture_url: null
        },
        "ses_grace",
        { isSiteAdmin: false, team_id: null, foundsTeam: false }
      )
      const { body } = yield* call("GET", "/team/members", as)
      expect(new Map(body.data.map((one: { id: string; expected: boolean }) => [one.id, one.expected]))).toEqual(
        new Map([
          [owner.id, false],
          [grace.user.id, false]
        ])
      )
      for (const email of ["nobody", "a b@example.com", "@", `${"x".repeat(260)}@example.com`]) {
        const answer = yield* call("POST", "/team/members", { ...as, body: { email } })
        expect([email, answer.status, answer.body.data.fields[0].path]).toEqual([email, 400, "email"])
      }
    })
  )

  it.effect("Team always keeps an owner when members are changed or removed", () =>
    Effect.gen(function* () {
      yield* alone
      const [owner, member] = [yield* somebody("owner"), yield* somebody("member")]
      const as = { key: owner.token }
      const path = `/team/members/${owner.id}`
      const demoted = yield* call("PATCH", path, { ...as, body: { role: "member" } })
      expect([demoted.status, demoted.body.code]).toEqual([409, "RESOURCE_IN_USE"])
      const readded = yield* call("POST", "/team/members", { ...as, body: { email: owner.email, role: "member" } })
      expect([readded.status, readded.body.code]).toEqual([409, "RESOURCE_IN_USE"])
      expect((yield* call("DELETE", path, as)).body.code).toBe("RESOURCE_IN_USE")

      const promoted = yield* call("PATCH", `/team/members/${member.id}`, { ...as, body: { role: "owner" } })
      expect([promoted.status, promoted.body.role]).toEqual([200, "owner"])
      expect((yield* call("DELETE", path, { key: member.token })).body).toEqual({ id: owner.id, deleted: true })
      // It holds from the next call on.
      expect((yield* call("GET", "/team", as)).body.code).toBe("TEAM_FORBIDDEN")
      expect((yield* call("DELETE", path, { key: member.token })).status).toBe(404)
    })
  )

  it.effect("Team is managed by its owners and by no key, and the demo user cannot add members", () =>
    Effect.gen(function* () {
      yield* alone
      const member = yield* somebody("member")
      yield* somebody("owner")
      for (const [key, code] of [
        [member.token, "ROLE_REQUIRED"],
        [teams.a.key, "USER_SESSION_REQUIRED"]
      ] as const) {
        const answers = yield* Effect.all([
          call("POST", "/team/members", { key, body: { email: "x@example.com" } }),
          call("PATCH", `/team/members/${member.id}`, { key, body: { role: "owner" } }),
          call("DELETE", `/team/members/${member.id}`, { key })
        ])
        expect(answers.map(({ body, status }) => [status, body.code])).toEqual(answers.map(() => [403, code]))
      }
      expect((yield* call("PATCH", "/team", { key: member.token, body: { name: "x" } })).body.code).toBe(
        "ROLE_REQUIRED"
      )
      expect((yield* call("GET", "/team/members", { key: member.token })).body.data.length).toBe(2)

      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into teams (id, name) values ('tm_demo', 'Demo') on conflict do nothing`
      const { body: demo } = yield* call("POST", "/auth/demo/login", { key: null })
      const asked = yield* call("POST", "/team/members", { key: demo.token, body: { email: "x@example.com" } })
      expect([asked.status, asked.body.code]).toEqual([403, "USER_SESSION_REQUIRED"])
    })
  )

  it.effect("Team calls find no member of another team by any id", () =>
    Effect.gen(function* () {
      yield* alone
      const sql = yield* SqlClient.SqlClient
      const owner = yield* somebody("owner")
      const theirs = yield* somebody(null)
      yield* sql`insert into memberships values (${teams.b.id}, ${theirs.id}, 'owner', now())`
      for (const id of [theirs.id, "usr_01jgfjjz00abcdefghjkmnpqrs", "usr_'", "grace@example.com"]) {
        const path = `/team/members/${encodeURIComponent(id)}`
        const changed = yield* call("PATCH", path, { key: owner.token, body: { role: "member" } })
        const removed = yield* call("DELETE", path, { key: owner.token })
        for (const { body, status } of [changed, removed]) {
          expect([id, status, body.code, body.message]).toEqual([id, 404, "NOT_FOUND", `member ${id} was not found`])
        }
      }
      expect(yield* sql`select role from memberships where user_id = ${theirs.id}`).toEqual([{ role: "owner" }])
    })
  )
})
