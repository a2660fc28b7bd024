import { expect, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { signingSecrets } from "@tidegate/storage/teams/ProjectSecrets"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { call, layer as server, teams } from "./ControlServer.ts"

/** The API key and the signing secret of a team. */

const path = "/v1/project-secrets"
const signing = (team: string) =>
  Effect.map(signingSecrets(team), (secrets) => secrets.map(({ secret }) => Redacted.value(secret)))

/** A team without secrets, and somebody who owns it. */
const freshTeam = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const token = `ses_${Buffer.from(id).toString("hex").padEnd(64, "0")}`
  yield* sql`insert into teams (id, name) values (${id}, ${id})`
  yield* sql`insert into users (id, issuer, subject, created_at, updated_at) values (${id}, '', ${id}, now(), now())`
  yield* sql`insert into memberships values (${id}, ${id}, 'owner', now())`
  yield* sql`insert into sessions values (${hashToken(token)}, ${id}, ${id}, now(), now() + interval '1 hour')`
  return { id, token }
})

layer(server, { excludeTestServices: true })("Project secrets", (it) => {
  it.effect("Project secrets are created at the first read and never shown", () =>
    Effect.gen(function* () {
      const { id, token } = yield* freshTeam("tm_lazy")
      expect(yield* signing(id)).toEqual([])
      const first = yield* call("GET", path, { key: token })
      expect(first.status).toBe(200)
      expect(first.body).toMatchObject({
        team_id: id,
        api_key: { has_secret: true },
        signing_secret: { has_secret: true }
      })
      expect(first.body.api_key.masked_value).toMatch(/^gwk_\*{4}[0-9a-f]{4}$/)
      expect(first.body.signing_secret.masked_value).toMatch(/^gws_\*{4}[0-9a-f]{4}$/)
      const [secret] = yield* signing(id)
      expect(JSON.stringify(first.body)).not.toContain(secret)
      expect((yield* call("GET", path, { key: token })).body).toEqual(first.body)
    })
  )

  it.effect("Rotation shows new secrets once, ends the old key and keeps the old signing secret for a day", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { id, token } = yield* freshTeam("tm_turn")
      yield* call("GET", path, { key: token })
      const [before] = yield* signing(id)
      const { body, headers } = yield* call("POST", `${path}/rotate`, { key: token })
      expect(headers.get("cache-control")).toContain("no-store")
      expect(body.api_key.value).toMatch(/^gwk_[0-9a-f]{64}$/)
      expect(body.signing_secret.value).toMatch(/^gws_[0-9a-f]{64}$/)
      // What libraries of Standard Webhooks take: base64 of the same bytes.
      expect(Buffer.from(body.signing_secret.whsec_value.slice("whsec_".length), "base64").toString()).toBe(
        body.signing_secret.value
      )
      expect(yield* signing(id)).toEqual([body.signing_secret.value, before])
      const [row] = yield* sql`select row_to_json(p)::text as row from project_secrets p where team_id = ${id}`
      for (const value of [body.api_key.value, body.signing_secret.value, before]) {
        expect(JSON.stringify(row)).not.toContain(value)
      }
      expect((yield* call("GET", "/sources", { key: body.api_key.value })).status).toBe(200)

      const one = yield* call("POST", `${path}/rotate`, { key: body.api_key.value, body: { rotate: ["api_key"] } })
      expect(one.body.signing_secret.value).toBeUndefined()
      expect(one.body.signing_secret.whsec_value).toBeUndefined()
      const dead = yield* call("GET", path, { key: body.api_key.value })
      expect([dead.status, dead.body.code]).toEqual([401, "INVALID_API_KEY"])
      const read = yield* call("GET", path, { key: one.body.api_key.value })
      expect(read.body.api_key).toEqual({ ...one.body.api_key, value: undefined })
      yield* sql`update project_secrets set previous_signing_secret_until = now() - interval '1 second' where team_id = ${id}`
      expect(yield* signing(id)).toEqual([body.signing_secret.value])
      for (const rotate of [[], ["password"], "api_key", [1]]) {
        expect((yield* call("POST", `${path}/rotate`, { key: token, body: { rotate } })).status).toBe(400)
      }
    })
  )

  it.effect("Written project secrets replace the old ones, and omitted secrets stay", () =>
    Effect.gen(function* () {
      const { id, token } = yield* freshTeam("tm_give")
      const given = "a-key-of-my-own"
      const put = (body: object) => call("PUT", path, { key: token, body })
      expect((yield* put({ api_key: given })).body.api_key.masked_value).toBe("****-own")
      expect((yield* call("GET", "/auth/me", { key: given })).body.active_team_id).toBe(id)
      yield* put({ signing_secret: "a secret of my own" })
      expect((yield* signing(id))[0]).toBe("a secret of my own")
      // Again: its answer may have been lost. The former one is not forgotten for it.
      yield* put({ signing_secret: "a secret of my own" })
      expect(yield* signing(id)).toHaveLength(2)
      expect((yield* call("GET", "/auth/me", { key: given })).status).toBe(200)
      for (const body of [
        {},
        { api_key: "elevenchars" },
        { api_key: "with spaces in it" },
        { api_key: `ses_${"0".repeat(64)}` },
        { api_key: teams.a.key },
        { signing_secret: "elevenchars" },
        { signing_secret: "whsec_not base64 at all" },
        { signing_secret: 123456789012 }
      ]) {
        const { body: answer, status } = yield* put(body)
        expect([status, answer.code], JSON.stringify(body)).toEqual([400, "VALIDATION_ERROR"])
      }
    })
  )
})
