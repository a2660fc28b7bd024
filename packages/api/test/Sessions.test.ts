import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { request } from "node:http"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { scopes } from "@tidegate/model/Permission"
import { demoTeam } from "@tidegate/storage/teams/Teams"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { BaseUrl, type CallOptions, call, layer as server, teams } from "./ControlServer.ts"

/** People: how they sign in and out, and what they may in which team. */

const as = (token: string, options: CallOptions = {}): CallOptions => ({ ...options, key: token })
const inTeam = (id: string) => ({ headers: { "x-team-id": id } })

let people = 0

/** Somebody with these memberships, signed in to the first of them; and the session's token. */
const somebody = Effect.fnUntraced(function* (
  memberships: Readonly<Record<string, "owner" | "member">>,
  lasts = "1 hour"
) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.user, Date.now())
  const token = `ses_${String(++people).padStart(64, "0")}`
  yield* sql`insert into users (id, issuer, subject, name, created_at, updated_at)
    values (${id}, 'https://issuer.test', ${id}, 'Ada', now(), now())`
  for (const [team, role] of Object.entries(memberships)) {
    yield* sql`insert into memberships values (${team}, ${id}, ${role}, now())`
  }
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${Object.keys(memberships)[0] ?? teams.a.id}, now(),
    now() + ${lasts}::interval)`
  return { id, token }
})

const code = "addHandler('transform', (request) => request)"

layer(server, { excludeTestServices: true })("User sessions", (it) => {
  it.effect("Demo login signs in the demo user for a day and does not store the token in plain text", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`insert into teams (id, name) values (${demoTeam}, 'Demo') on conflict do nothing`
      const { body, status } = yield* call("POST", "/v1/auth/demo/login", { key: null })
      expect(status).toBe(200)
      expect(body).toMatchObject({
        user: { id: "usr_demo" },
        active_team_id: demoTeam,
        memberships: [{ team_id: demoTeam, role: "owner" }]
      })
      expect(body.token).toMatch(/^ses_[0-9a-f]{64}$/)
      expect((Date.parse(body.session.expires_at) - Date.now()) / 3_600_000).toBeCloseTo(24, 1)
      const { token: _, ...told } = body
      expect((yield* call("GET", "/auth/me", as(body.token))).body).toEqual(told)
      const stored = yield* sql`select row_to_json(s)::text as row from sessions s`
      expect(JSON.stringify(stored)).not.toContain(body.token)

      expect((yield* call("PATCH", "/auth/me", as(body.token, { body: { name: "Eve" } }))).body.code).toBe(
        "USER_SESSION_REQUIRED"
      )
      expect((yield* call("GET", "/sources", as(body.token))).status).toBe(200)
      expect((yield* call("GET", "/sources", as(body.token, inTeam(teams.a.id)))).body.code).toBe("TEAM_FORBIDDEN")
    })
  )

  it.effect("Demo login is disabled under an unknown host name", () =>
    Effect.gen(function* () {
      // A page of another site, whose name has come to point here.
      const url = `${yield* BaseUrl}/auth/demo/login`
      const answer = yield* Effect.callback<string>((resume) => {
        request(url, { method: "POST", headers: { host: "rebound.example" } }, (response) => {
          let text = ""
          response.on("data", (piece: Buffer) => (text += piece.toString()))
          response.on("end", () => resume(Effect.succeed(text)))
        }).end()
      })
      expect(JSON.parse(answer)).toMatchObject({ status: 403, code: "LOGIN_DISABLED" })
    })
  )

  it.effect("Session ends when the user signs out and when its time is over", () =>
    Effect.gen(function* () {
      const { token } = yield* somebody({ [teams.a.id]: "member" })
      expect((yield* call("POST", "/auth/logout", as(token))).body).toEqual({ ok: true })
      for (const dead of [token, (yield* somebody({ [teams.a.id]: "owner" }, "-1 second")).token]) {
        for (const [method, path] of [
          ["POST", "/auth/logout"],
          ["GET", "/auth/me"],
          ["GET", "/sources"]
        ] as const) {
          const answer = yield* call(method, path, as(dead))
          expect([answer.status, answer.body.code]).toEqual([401, "SESSION_EXPIRED"])
        }
      }
    })
  )

  it.effect("User can change the own name, and an API key has no name", () =>
    Effect.gen(function* () {
      const { id, token } = yield* somebody({ [teams.a.id]: "member" })
      const changed = yield* call("PATCH", "/auth/me", as(token, { body: { name: "  Grace " } }))
      expect(changed.body.user).toMatchObject({ id, name: "Grace" })
      expect((yield* call("PUT", "/auth/me", as(token, { body: { name: "Joan" } }))).body.user.name).toBe("Joan")
      expect((yield* call("GET", "/auth/me", as(token))).body.user.name).toBe("Joan")
      for (const name of ["   ", "", "x".repeat(121), 1, null]) {
        expect((yield* call("PATCH", "/auth/me", as(token, { body: { name } }))).status).toBe(400)
      }
      const ofKey = yield* call("GET", "/auth/me")
      expect(ofKey.body).toEqual({
        user: null,
        active_team_id: teams.a.id,
        session: null,
        memberships: [{ team_id: teams.a.id, role: "owner" }],
        key: { scopes: [...scopes], execute_grants: null }
      })
      for (const [method, path] of [
        ["PATCH", "/auth/me"],
        ["POST", "/auth/logout"]
      ] as const) {
        const answer = yield* call(method, path, { body: { name: "x" } })
        expect([answer.status, answer.body.code]).toEqual([403, "USER_SESSION_REQUIRED"])
      }
    })
  )

  it.effect("Session acts on the named team, else on its active team, with the user's role there", () =>
    Effect.gen(function* () {
      const { token } = yield* somebody({ [teams.a.id]: "member", [teams.b.id]: "owner" })
      const body = { name: "by-a-user", code }
      const refused = yield* call("POST", "/transformations", as(token, { body }))
      expect(refused.body).toMatchObject({ status: 403, code: "ROLE_REQUIRED", data: { required: "owner" } })
      expect((yield* call("GET", "/transformations", as(token))).status).toBe(200)
      const made = yield* call("POST", "/transformations", as(token, { body, ...inTeam(teams.b.id) }))
      expect(made.body).toMatchObject({ team_id: teams.b.id })
      const byQuery = yield* call("GET", `/transformations/${made.body.id}?team_id=${teams.b.id}`, as(token))
      expect(byQuery.body.id).toBe(made.body.id)
      // The header goes before the query, and the session's team is not where it is.
      const both = yield* call("GET", `/transformations?team_id=${teams.a.id}`, as(token, inTeam(teams.b.id)))
      expect(both.body.models.map(({ id }: { readonly id: string }) => id)).toEqual([made.body.id])
      expect((yield* call("GET", `/transformations/${made.body.id}`, as(token))).status).toBe(404)
      for (const team of ["tm_nowhere", "tm_a,tm_b"]) {
        expect((yield* call("GET", "/sources", as(token, inTeam(team)))).body.code).toBe("TEAM_FORBIDDEN")
      }
      expect((yield* call("GET", "/sources?team_id=tm_a&team_id=tm_b", as(token))).body.code).toBe("TEAM_FORBIDDEN")
    })
  )

  it.effect("Member sees the names of a transformation's variables and not their values", () =>
    Effect.gen(function* () {
      const { token } = yield* somebody({ [teams.a.id]: "member" })
      const body = { name: "with-env", code, env: { TOKEN: "planted-secret" } }
      const { id } = (yield* call("POST", "/transformations", { body })).body
      const seen = yield* call("GET", `/transformations/${id}`, as(token))
      expect(seen.body.env.TOKEN).toMatch(/^\*{4}/)
      expect(JSON.stringify(seen.body)).not.toContain("planted-secret")
    })
  )

  it.effect("Member cannot save code in a connection's rule but can name an existing transformation", () =>
    Effect.gen(function* () {
      const [member, owner] = [yield* somebody({ [teams.a.id]: "member" }), yield* somebody({ [teams.a.id]: "owner" })]
      const source = (yield* call("POST", "/sources", { body: { name: "code-in-rules" } })).body
      const target = { name: "code-in-rules", type: "MOCK_API", config: {} }
      const destination = (yield* call("POST", "/destinations", { body: target })).body
      const inline = { type: "transform", transformation: { name: "from-a-rule", code } }
      const body = { name: "code-in-rules", source_id: source.id, destination_id: destination.id, rules: [inline] }
      const made = yield* call("POST", "/connections", as(owner.token, { body }))
      expect(made.status).toBe(200)
      const path = `/connections/${made.body.id}`
      for (const [method, to, written] of [
        ["POST", "/connections", { ...body, name: "another" }],
        ["PUT", "/connections", body],
        ["PATCH", path, { rules: [{ type: "delay", delay: 1 }, inline] }],
        ["PUT", path, { rules: [{ ...inline, type: "transformation" }] }]
      ] as const) {
        const refused = yield* call(method, to, as(member.token, { body: written }))
        expect(refused.body).toMatchObject({ status: 403, code: "ROLE_REQUIRED", data: { required: "owner" } })
      }
      // As it is read, the rule names what was made of it.
      const again = yield* call("PATCH", path, as(member.token, { body: { rules: made.body.rules } }))
      expect(again).toMatchObject({ status: 200, body: { rules: made.body.rules } })
    })
  )

  it.effect("User without a membership can only read the own profile and sign out", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id, token } = yield* somebody({ [teams.a.id]: "owner" })
      yield* sql`delete from memberships where user_id = ${id}`
      expect((yield* call("GET", "/sources", as(token))).body.code).toBe("TEAM_FORBIDDEN")
      expect((yield* call("GET", "/auth/me", as(token))).body.memberships).toEqual([])
      expect((yield* call("POST", "/auth/logout", as(token))).status).toBe(200)
    })
  )
})
