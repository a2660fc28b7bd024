import { expect, layer } from "@effect/vitest"
import { randomBytes } from "node:crypto"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import type { Scope } from "@tidegate/model/Permission"
import { maxKeys } from "@tidegate/model/ProjectKey"
import { hashToken } from "@tidegate/storage/secrets/Secrets"
import { grantable } from "../src/contract/RouteKeys.ts"
import { RateLimits } from "../src/RateLimit.ts"
import { type Answer, call, layer as server } from "./ControlServer.ts"

/** Keys that hold only what they were given. */

const path = "/v1/project-api-keys"

let teams = 0

/** A team with an owner, a member and an API key. */
const freshTeam = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const id = `tm_keys${++teams}`
  const key = `gwk_${randomBytes(16).toString("hex")}`
  yield* sql`insert into teams (id, name) values (${id}, ${id})`
  yield* sql`insert into project_secrets (team_id, api_key_hash, api_key_masked, signing_secret, signing_secret_masked)
    values (${id}, ${hashToken(key)}, 'gwk_****', 'unused', '****')`
  const somebody = Effect.fnUntraced(function* (role: "owner" | "member") {
    const token = `ses_${randomBytes(32).toString("hex")}`
    const user = `usr_${id}${role}`
    yield* sql`insert into users (id, issuer, subject, created_at, updated_at) values (${user}, '', ${user}, now(), now())`
    yield* sql`insert into memberships values (${id}, ${user}, ${role}, now())`
    yield* sql`insert into sessions values (${hashToken(token)}, ${user}, ${id}, now(), now() + interval '1 hour')`
    return token
  })
  return { id, key, owner: yield* somebody("owner"), member: yield* somebody("member") }
})

type Team = Effect.Success<typeof freshTeam>

const make = (team: Team, policy: object = {}) =>
  call("POST", path, { key: team.owner, body: { name: "ci", scopes: ["control:read"], ...policy } })

/** A key with these scopes, and its text. */
const keyWith = Effect.fnUntraced(function* (team: Team, scopes: ReadonlyArray<Scope>, policy: object = {}) {
  const { body, status } = yield* make(team, { scopes, ...policy })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data as { readonly id: string; readonly api_key: string; readonly masked_key: string }
})

const codeOf = ({ body, status }: Answer) => [status, body.code]

/** What has been decided about a key, once it is written. */
const audit = Effect.fnUntraced(function* (team: Team, id: string, until: (rows: ReadonlyArray<Decided>) => boolean) {
  for (;;) {
    const { body, status } = yield* call("GET", `${path}/${id}/audit`, { key: team.owner })
    expect(status).toBe(200)
    if (until(body.data)) return body.data as ReadonlyArray<Decided>
    yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 20)))
  }
})

interface Decided {
  readonly route_key: string
  readonly permission: string
  readonly decision: string
  readonly reason: string | null
  readonly count: number
  readonly first_seen_at: string
  readonly last_seen_at: string
}

/** By what was decided: how often. */
const sums = (rows: ReadonlyArray<Decided>): Record<string, number> => {
  const sum: Record<string, number> = {}
  for (const { count, decision, permission, reason, route_key } of rows) {
    const kind = [decision, permission, reason, route_key].filter((one) => one !== null).join(" ")
    sum[kind] = (sum[kind] ?? 0) + count
  }
  return sum
}

const world = Layer.provide(server, Layer.succeed(RateLimits, { perKey: 6_000, failedPerAddress: 1_000_000 }))

layer(world, { excludeTestServices: true })("Project keys", (it) => {
  it.effect("Project key is shown in full once and later only by its prefix", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const team = yield* freshTeam
      const { body, headers, status } = yield* make(team, {
        name: "  ci  ",
        scopes: ["control:read", "control:execute"],
        execute_grants: ["POST:/v1/events/:id/retry"],
        rate_limit_per_minute: 100
      })
      expect(status).toBe(201)
      expect(headers.get("cache-control")).toBe("no-store")
      const { api_key, ...record } = body.data
      expect(api_key).toMatch(/^gwp_[0-9A-Za-z]{8}_[0-9A-Za-z]{38}$/)
      expect(record).toEqual({
        id: expect.stringMatching(/^pak_[0-9a-f]{32}$/),
        team_id: team.id,
        name: "ci",
        masked_key: `${api_key.slice(0, 12)}_****`,
        status: "active",
        scopes: ["control:read", "control:execute"],
        execute_grants: ["POST:/v1/events/:id/retry"],
        rate_limit_per_minute: 100,
        last_used_at: null,
        secret_last_rotated_at: record.created_at,
        revoked_at: null,
        expires_at: null,
        legacy_project_secret: false,
        created_by_user_id: `usr_${team.id}owner`,
        created_at: expect.any(String),
        updated_at: record.created_at
      })
      const read = yield* call("GET", `${path}/${record.id}`, { key: team.owner })
      expect(read.body).toEqual({ data: record })
      const list = yield* call("GET", path, { key: team.owner })
      expect(list.body.data[0]).toEqual(record)
      const stored = yield* sql`select row_to_json(k)::text as row from project_api_keys k`
      expect(JSON.stringify([list.body, stored])).not.toContain(api_key.slice(13))
    })
  )

  it.effect("Project key can call what its scopes allow and is told which scope is missing", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const reader = yield* keyWith(team, ["control:read"])
      const editor = yield* keyWith(team, ["control:edit"])
      const runner = yield* keyWith(team, ["control:execute"], {
        execute_grants: ["POST:/v1/workflow-formatter/test", "POST:/v1/filters/test"]
      })
      const source = { name: "s" }
      const formatterTest = { config: { operation: "text.lowercase" }, inputs: { input: "A" } }
      const as = (key: { readonly api_key: string }, method: string, to: string, body?: unknown) =>
        call(method, to, { key: key.api_key, ...(body === undefined ? {} : { body }) })

      expect((yield* as(reader, "GET", "/sources")).status).toBe(200)
      expect((yield* as(reader, "GET", "/v1/workflow-formatter/catalog")).status).toBe(200)
      expect((yield* as(editor, "POST", "/sources", source)).status).toBe(200)
      expect((yield* as(runner, "POST", "/workflow-formatter/test", formatterTest)).status).toBe(200)

      for (const [answer, required] of [
        [yield* as(reader, "POST", "/sources", source), "control:edit"],
        [yield* as(editor, "GET", "/sources"), "control:read"],
        [yield* as(runner, "GET", "/sources"), "control:read"],
        [yield* as(reader, "POST", "/workflow-formatter/test", formatterTest), "control:execute"],
        // What answers stored payloads is read by it, whatever else it does.
        [yield* as(editor, "POST", `/requests/req_${"0".repeat(26)}/share`, {}), "control:read"],
        [yield* as(editor, "POST", "/request-fixtures", { request_id: "req_1", name: "f" }), "control:read"],
        [yield* as(editor, "PATCH", `/request-fixtures/fix_${"0".repeat(26)}`, {}), "control:read"],
        [yield* as(runner, "POST", "/filters/test", {}), "control:read"]
      ] as const) {
        expect([...codeOf(answer), answer.body.data]).toEqual([403, "INSUFFICIENT_SCOPE", { required }])
      }
      const ungranted = yield* as(runner, "PUT", "/transformations/run", {})
      expect([...codeOf(ungranted), ungranted.body.data]).toEqual([
        403,
        "EXECUTE_GRANT_REQUIRED",
        { route_key: "POST:/v1/transformations/run" }
      ])
      // Each may ask what it may do, and is told nothing about people.
      for (const [key, scopes, execute_grants] of [
        [reader, ["control:read"], []],
        [editor, ["control:edit"], []],
        [runner, ["control:execute"], ["POST:/v1/workflow-formatter/test", "POST:/v1/filters/test"]]
      ] as const) {
        expect((yield* as(key, "GET", "/auth/me")).body).toEqual({
          user: null,
          active_team_id: team.id,
          session: null,
          memberships: [],
          key: { scopes, execute_grants }
        })
      }
      expect(codeOf(yield* as(reader, "PATCH", "/auth/me", { name: "x" }))).toEqual([403, "USER_SESSION_REQUIRED"])
      // Whether it is there is not told before that.
      const hidden = yield* as(reader, "POST", `/events/evt_${"0".repeat(26)}/retry`)
      expect(codeOf(hidden)).toEqual([403, "INSUFFICIENT_SCOPE"])
      for (const [method, to] of [
        ["GET", path],
        ["GET", "/project-secrets"],
        ["POST", "/auth/logout"],
        // Of what is automated, filters and the formatter alone.
        ["GET", "/workflows"],
        ["GET", "/workflow-activity"],
        ["GET", "/workflow-templates"],
        ["GET", "/actions"],
        ["GET", "/action-providers"],
        ["GET", "/metrics/workflows"]
      ] as const) {
        expect(codeOf(yield* as(reader, method, to)), to).toEqual([403, "USER_SESSION_REQUIRED"])
      }
      expect(codeOf(yield* call("GET", "/sources", { key: reader.api_key, headers: { "x-team-id": "tm_a" } }))).toEqual(
        [403, "TEAM_FORBIDDEN"]
      )
      const wrong = reader.api_key.slice(0, -1) + (reader.api_key.endsWith("0") ? "1" : "0")
      expect(codeOf(yield* call("GET", "/sources", { key: wrong }))).toEqual([401, "INVALID_API_KEY"])
    })
  )

  it.effect("Project key runs transformations by a grant and can neither read nor write them", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const execute_grants = ["POST:/v1/transformations/run"]
      const key = yield* keyWith(team, ["control:read", "control:edit", "control:execute"], { execute_grants })
      const body = { name: "by-people", code: "addHandler('transform', (request) => request)" }
      const made = (yield* call("POST", "/transformations", { key: team.owner, body })).body
      const one = `/transformations/${made.id}`
      const rules = [{ type: "transform", transformation: body }]
      for (const [method, to, written] of [
        ["GET", "/transformations"],
        ["POST", "/transformations", body],
        ["PUT", "/transformations", body],
        ["GET", one],
        ["PATCH", one, { name: "renamed" }],
        ["PUT", one, { name: "renamed" }],
        ["GET", `${one}/executions`],
        ["GET", `${one}/executions/txe_${"0".repeat(26)}`],
        ["DELETE", one],
        // Code in a rule would be saved as one.
        ["POST", "/connections", { name: "inline", source_id: "src_1", destination_id: "des_1", rules }],
        ["PUT", "/connections", { name: "inline", source_id: "src_1", destination_id: "des_1", rules }]
      ] as const) {
        const answer = yield* call(method, to, {
          key: key.api_key,
          ...(written === undefined ? {} : { body: written })
        })
        expect(codeOf(answer), `${method} ${to}`).toEqual([403, "USER_SESSION_REQUIRED"])
      }
      const ran = yield* call("POST", "/transformations/run", {
        key: key.api_key,
        body: { transformation_id: made.id }
      })
      expect(ran.status).toBe(200)
      // The team's own key acts as an owner on all of document 1.
      expect((yield* call("GET", one, { key: team.key })).body.name).toBe("by-people")
      expect((yield* call("DELETE", one, { key: team.key })).status).toBe(200)
    })
  )

  it.effect("Project key can save a connection with its transformation and cannot put code into its rules", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const key = (yield* keyWith(team, ["control:read", "control:edit"])).api_key
      const asOwner = (to: string, body: object) => call("POST", to, { key: team.owner, body })
      const transformation = { name: "in-a-rule", code: "addHandler('transform', (request) => request)" }
      const source = (yield* asOwner("/sources", { name: "s" })).body
      const destination = (yield* asOwner("/destinations", { name: "d", type: "MOCK_API", config: {} })).body
      const rules = [{ type: "transform", transformation }]
      const ends = { source_id: source.id, destination_id: destination.id }
      const made = yield* asOwner("/connections", { name: "c", ...ends, rules })
      expect(made.status).toBe(200)
      const one = `/connections/${made.body.id}`
      const read = (yield* call("GET", one, { key })).body
      for (const [method, to] of [
        ["PUT", "/connections"],
        ["PUT", one],
        ["PATCH", one]
      ] as const) {
        const again = yield* call(method, to, { key, body: read })
        expect([to, again.status, again.body.rules]).toEqual([to, 200, read.rules])
        for (const rule of [
          { type: "transformation", transformation },
          { type: "transform", transformation_id: read.rules[0].transformation_id, transformation }
        ]) {
          const refused = yield* call(method, to, { key, body: { ...read, rules: [rule] } })
          expect(codeOf(refused), to).toEqual([403, "USER_SESSION_REQUIRED"])
        }
        // Where no code is taken from, none is.
        for (const odd of [rules[0], [rules], [{ type: "transform", Transformation: transformation }]]) {
          const refused = yield* call(method, to, { key, body: { ...read, rules: odd } })
          expect(codeOf(refused), to).toEqual([400, "RULE_INVALID"])
        }
      }
      expect((yield* call("GET", one, { key })).body.rules).toEqual(read.rules)
    })
  )

  it.effect("Project keys are managed by owners of the team and by no key", () =>
    Effect.gen(function* () {
      const [team, other] = [yield* freshTeam, yield* freshTeam]
      const { api_key, id } = yield* keyWith(team, ["control:read", "control:edit"])
      const calls = [
        ["GET", path],
        ["POST", path],
        ["GET", `${path}/${id}`],
        ["PATCH", `${path}/${id}`],
        ["PUT", `${path}/${id}`],
        ["GET", `${path}/${id}/audit`],
        ["POST", `${path}/${id}/revoke`],
        ["DELETE", `${path}/${id}`]
      ] as const
      for (const [method, to] of calls) {
        const body = method === "GET" || method === "DELETE" ? {} : { body: {} }
        expect(codeOf(yield* call(method, to, { key: api_key, ...body })), to).toEqual([403, "USER_SESSION_REQUIRED"])
        expect(codeOf(yield* call(method, to, { key: team.key, ...body })), to).toEqual([403, "USER_SESSION_REQUIRED"])
        expect(codeOf(yield* call(method, to, { key: team.member, ...body })), to).toEqual([403, "ROLE_REQUIRED"])
        if (to === path) continue
        const theirs = yield* call(method, to, { key: other.owner, ...body })
        expect([...codeOf(theirs), theirs.body.data], to).toEqual([
          404,
          "NOT_FOUND",
          { resource_type: "project_api_key", id }
        ])
      }
      expect((yield* call("GET", `${path}/${id}`, { key: team.owner })).body.data.status).toBe("active")
    })
  )

  it.effect("Contradictory key policy is refused with all of its faults", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const faults = Effect.fnUntraced(function* (policy: object) {
        const { body, status } = yield* make(team, policy)
        expect([status, body.code], JSON.stringify(policy)).toEqual([400, "INVALID_KEY_POLICY"])
        return body.data.fields.map((field: { readonly path: string }) => field.path)
      })
      const execute = { scopes: ["control:execute"] }
      expect(yield* faults({ name: " ", scopes: [], rate_limit_per_minute: 0 })).toEqual(
        expect.arrayContaining(["name", "scopes", "rate_limit_per_minute"])
      )
      for (const name of ["x".repeat(101), "ab\u202Ecd", "a\u200Bb", "a\u2066b"]) {
        expect(yield* faults({ name }), JSON.stringify(name)).toEqual(["name"])
      }
      expect(yield* faults({ scopes: ["control:read", "control:read"] })).toEqual(["scopes"])
      expect(yield* faults({ scopes: ["control:all"] })).toEqual(["scopes.0"])
      expect(yield* faults({ rate_limit_per_minute: 10_001 })).toEqual(["rate_limit_per_minute"])
      expect(yield* faults({ execute_grants: [grantable[0]] })).toEqual(["execute_grants"])
      expect(yield* faults({ ...execute, execute_grants: ["POST:/v1/events/*", "GET:/v1/sources"] })).toEqual([
        "execute_grants.0",
        "execute_grants.1"
      ])
      for (const [policy, as] of [
        [{ name: "x".repeat(100), rate_limit_per_minute: 10_000 }, {}],
        [
          { ...execute, execute_grants: [] },
          { execute_grants: [], rate_limit_per_minute: 240 }
        ],
        [{ ...execute, execute_grants: grantable }, { execute_grants: grantable }],
        // A route has one name, however it is called.
        [
          { ...execute, execute_grants: ["PUT:/v1/transformations/run", "POST:/v1/transformations/run"] },
          { execute_grants: ["POST:/v1/transformations/run"] }
        ]
      ] as const) {
        const { body, status } = yield* make(team, policy)
        expect(status, JSON.stringify(body)).toBe(201)
        expect(body.data).toMatchObject(as)
      }
    })
  )

  it.effect("Change of a project key applies to the next call and keeps what it does not name", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const key = yield* keyWith(team, ["control:read", "control:execute"], {
        execute_grants: ["POST:/v1/events/:id/retry"]
      })
      const change = (body: object, method = "PATCH") => call(method, `${path}/${key.id}`, { key: team.owner, body })
      const sources = call("GET", "/sources", { key: key.api_key })

      const strange = yield* change({ name: "other", status: "disabled", secret: "x", unknown: 1 })
      expect([...codeOf(strange), strange.body.data.fields.map(({ path }: { path: string }) => path)]).toEqual([
        400,
        "VALIDATION_ERROR",
        ["secret", "unknown"]
      ])
      expect(
        (yield* change({ ...key, api_key: undefined, name: "other", status: "disabled" })).body.data
      ).toMatchObject({
        name: "other",
        status: "disabled",
        scopes: ["control:read", "control:execute"]
      })
      expect(codeOf(yield* sources)).toEqual([401, "INVALID_API_KEY"])
      expect((yield* change({ status: "active" }, "PUT")).body.data).toMatchObject({ name: "other", status: "active" })
      expect((yield* sources).status).toBe(200)

      const dropping = yield* change({ scopes: ["control:edit"] })
      expect([...codeOf(dropping), dropping.body.data.fields[0].path]).toEqual([
        400,
        "INVALID_KEY_POLICY",
        "execute_grants"
      ])
      expect((yield* sources).status).toBe(200)
      expect((yield* change({ scopes: ["control:edit"], execute_grants: [] })).status).toBe(200)
      expect(codeOf(yield* sources)).toEqual([403, "INSUFFICIENT_SCOPE"])
      expect(codeOf(yield* change({ status: "revoked" }))).toEqual([400, "INVALID_KEY_POLICY"])
    })
  )

  it.effect("Project key is revoked permanently by either call, and a repeat changes nothing", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      for (const [method, suffix] of [
        ["DELETE", ""],
        ["POST", "/revoke"]
      ] as const) {
        const { api_key, id } = yield* keyWith(team, ["control:read"])
        expect((yield* call("GET", "/sources", { key: api_key })).status).toBe(200)
        const revoke = call(method, `${path}/${id}${suffix}`, { key: team.owner })
        const first = yield* revoke
        expect([first.status, first.body.data.status, first.body.data.revoked_at]).toEqual([
          200,
          "revoked",
          expect.any(String)
        ])
        expect(codeOf(yield* call("GET", "/sources", { key: api_key }))).toEqual([401, "INVALID_API_KEY"])
        const { last_used_at: _, ...data } = first.body.data
        expect((yield* revoke).body.data).toMatchObject(data)
        const late = yield* call("PATCH", `${path}/${id}`, { key: team.owner, body: { status: "active" } })
        expect(codeOf(late)).toEqual([409, "PROJECT_KEY_REVOKED"])
      }
    })
  )

  it.effect(
    "Key is refused from its end on with the time of it, and is accepted again when its owner moves the end",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const team = yield* freshTeam
        const soon = new Date(Date.now() + 86_400_000).toISOString()
        const key = yield* keyWith(team, ["control:read"], { expires_at: soon })
        const own = (yield* call("GET", path, { key: team.owner })).body.data.find(
          (one: { readonly legacy_project_secret: boolean }) => one.legacy_project_secret
        )
        const change = (id: string, expires_at: unknown) =>
          call("PATCH", `${path}/${id}`, { key: team.owner, body: { expires_at } })
        const expire = (id: string) => sql`update project_api_keys set expires_at = '2026-01-01' where id = ${id}`
        expect((yield* call("GET", `${path}/${key.id}`, { key: team.owner })).body.data.expires_at).toBe(soon)
        for (const at of ["2026-01-01", "now", "tomorrow", "2026-02-30T00:00:00Z", "9999-01-01", "", 5, {}]) {
          const refused = yield* change(key.id, at)
          expect([...codeOf(refused), refused.body.data.fields[0].path], JSON.stringify(at)).toEqual([
            400,
            "INVALID_KEY_POLICY",
            "expires_at"
          ])
        }
        // What is not named stays.
        const renamed = yield* call("PATCH", `${path}/${key.id}`, { key: team.owner, body: { name: "renamed" } })
        expect(renamed.body.data.expires_at).toBe(soon)

        expect((yield* change(own.id, soon)).status).toBe(200)
        for (const [id, api_key] of [
          [key.id, key.api_key],
          [own.id, team.key]
        ] as const) {
          expect((yield* call("GET", "/sources", { key: api_key })).status).toBe(200)
          yield* expire(id)
          const refused = yield* call("GET", "/sources", { key: api_key })
          expect([...codeOf(refused), refused.body.data]).toEqual([
            401,
            "INVALID_API_KEY",
            { expired_at: "2026-01-01T00:00:00.000Z" }
          ])
          expect(refused.body.message).toContain("expired at 2026-01-01T00:00:00.000Z")
          const shown = (yield* call("GET", `${path}/${id}`, { key: team.owner })).body.data
          expect(shown).toMatchObject({ status: "expired", expires_at: "2026-01-01T00:00:00.000Z" })
          // Its end can be sent back as it is, and its switch is another thing.
          const off = yield* call("PATCH", `${path}/${id}`, {
            key: team.owner,
            body: { status: "disabled", expires_at: shown.expires_at }
          })
          expect(off.body.data.status).toBe("disabled")
          expect((yield* call("GET", "/sources", { key: api_key })).body.data).toBeUndefined()
          yield* call("PATCH", `${path}/${id}`, { key: team.owner, body: { status: "active" } })
          expect((yield* change(id, null)).body.data).toMatchObject({ status: "active", expires_at: null })
          expect((yield* call("GET", "/sources", { key: api_key })).status).toBe(200)
        }
        yield* expire(own.id)
        const rotated = yield* call("POST", "/project-secrets/rotate", {
          key: team.owner,
          body: { rotate: ["api_key"] }
        })
        // The end of the former key was not chosen for the new one.
        expect((yield* call("GET", "/sources", { key: rotated.body.api_key.value })).status).toBe(200)
        const rows = yield* audit(team, key.id, (rows) => rows.some(({ reason }) => reason === "key_disabled"))
        expect(sums(rows)).toMatchObject({ "denied read key_expired GET:/v1/sources": 1 })
      })
  )

  it.effect("Team has at most the maximum number of project keys, even when they are made concurrently", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const answers = yield* Effect.all(
        Array.from({ length: maxKeys + 10 }, () => make(team)),
        { concurrency: 20 }
      )
      const made = answers.filter(({ status }) => status === 201)
      expect(made).toHaveLength(maxKeys)
      for (const answer of answers.filter(({ status }) => status !== 201)) {
        expect([...codeOf(answer), answer.body.data]).toEqual([409, "PROJECT_KEY_LIMIT_REACHED", { limit: maxKeys }])
      }
      // One that is disabled still counts, one that is revoked does not.
      const [first, second] = made
      yield* call("PATCH", `${path}/${first!.body.data.id}`, { key: team.owner, body: { status: "disabled" } })
      expect((yield* make(team)).status).toBe(409)
      yield* call("DELETE", `${path}/${second!.body.data.id}`, { key: team.owner })
      expect((yield* make(team)).status).toBe(201)
      const { data } = (yield* call("GET", path, { key: team.owner })).body
      expect(data.at(-1).id).toBe(second!.body.data.id)
      expect(data).toHaveLength(maxKeys + 2)
    })
  )

  it.effect("Project key is limited to its calls per minute and is told how many are left", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const { api_key, id } = yield* keyWith(team, ["control:read"], { rate_limit_per_minute: 20 })
      const began = Date.now()
      const answers = yield* Effect.all(
        Array.from({ length: 60 }, () => call("GET", "/sources", { key: api_key })),
        { concurrency: 20 }
      )
      const allowed = answers.filter(({ status }) => status === 200)
      const more = Math.floor((20 * (Date.now() - began)) / 60_000)
      expect(allowed.length).toBeGreaterThanOrEqual(20)
      expect(allowed.length).toBeLessThanOrEqual(20 + more)
      expect(new Set(allowed.map(({ headers }) => headers.get("ratelimit-policy")))).toEqual(
        new Set(['"key";q=20;w=60'])
      )
      const left = allowed.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")))
      expect(Math.max(...left)).toBe(19)
      expect(Math.min(...left)).toBe(0)
      const refused = answers.filter(({ status }) => status === 429)
      expect(refused.length).toBe(60 - allowed.length)
      for (const { body, headers } of refused) {
        expect(body).toMatchObject({ code: "RATE_LIMITED", data: { limit: 20, scope: "project_key" } })
        expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1)
        expect(body.data.retry_after_seconds).toBe(Number(headers.get("retry-after")))
        expect(headers.get("ratelimit")).toMatch(/^"key";r=0;t=\d+$/)
      }
      // It is counted before its scopes are looked at, and by its own allowance alone.
      expect(codeOf(yield* call("POST", "/sources", { key: api_key, body: {} }))).toEqual([429, "RATE_LIMITED"])
      expect((yield* call("GET", "/sources", { key: team.key })).status).toBe(200)
      // A new limit holds at once.
      yield* call("PATCH", `${path}/${id}`, { key: team.owner, body: { rate_limit_per_minute: 10_000 } })
      expect((yield* call("GET", "/sources", { key: api_key })).status).toBe(200)
    })
  )

  it.effect("Audit of a project key counts each of a thousand concurrent decisions exactly", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const key = yield* keyWith(team, ["control:read"], { rate_limit_per_minute: 10_000 })
      const as = (method: string, to: string) =>
        call(method, to, { key: key.api_key, ...(method === "GET" ? {} : { body: {} }) })
      const calls = [
        as("GET", "/sources"),
        as("GET", "/v1/sources"),
        as("POST", "/sources"),
        as("GET", "/project-secrets")
      ]
      yield* Effect.all(
        Array.from({ length: 1_000 }, (_, index) => calls[index % calls.length]!),
        { concurrency: 64, discard: true }
      )
      yield* call("GET", "/sources", { key: key.api_key, headers: { "x-team-id": "tm_b" } })
      yield* call("PATCH", `${path}/${key.id}`, { key: team.owner, body: { status: "disabled" } })
      yield* as("GET", "/sources")
      yield* call("DELETE", `${path}/${key.id}`, { key: team.owner })
      yield* as("GET", "/sources")
      const expected = {
        "allowed read GET:/v1/sources": 500,
        "denied edit scope_missing POST:/v1/sources": 250,
        "denied read session_required GET:/v1/project-secrets": 250,
        "denied read team_mismatch GET:/v1/sources": 1,
        "denied read key_disabled GET:/v1/sources": 1,
        "denied read key_revoked GET:/v1/sources": 1,
        "allowed edit POST:/v1/project-api-keys": 1,
        "allowed edit PATCH:/v1/project-api-keys/:id": 1,
        "allowed edit DELETE:/v1/project-api-keys/:id": 1
      }
      const all = Object.values(expected).reduce((sum, count) => sum + count, 0)
      const rows = yield* audit(team, key.id, (rows) => rows.reduce((sum, { count }) => sum + count, 0) >= all)
      expect(sums(rows)).toEqual(expected)
      const seen = rows.map(({ last_seen_at }) => last_seen_at)
      expect(seen).toEqual(seen.toSorted().toReversed())
      for (const { first_seen_at, last_seen_at } of rows) expect(first_seen_at <= last_seen_at).toBe(true)
      const { last_used_at } = (yield* call("GET", `${path}/${key.id}`, { key: team.owner })).body.data
      expect(last_used_at).toEqual(expect.any(String))
    })
  )

  it.effect("API key of the team is listed as a project key and may do everything until it is restricted", () =>
    Effect.gen(function* () {
      const team = yield* freshTeam
      const [own] = (yield* call("GET", path, { key: team.owner })).body.data
      expect(own).toMatchObject({
        id: expect.stringMatching(/^pak_legacy_[0-9a-f]{32}$/),
        masked_key: "gwk_****",
        legacy_project_secret: true,
        status: "active",
        execute_grants: grantable,
        rate_limit_per_minute: 6_000,
        created_by_user_id: null
      })
      const change = (body: object) => call("PATCH", `${path}/${own.id}`, { key: team.owner, body })
      expect(codeOf(yield* change({ name: "mine" }))).toEqual([400, "INVALID_KEY_POLICY"])
      expect((yield* call("GET", "/project-secrets", { key: team.key })).status).toBe(200)
      expect((yield* change({ scopes: ["control:read"], execute_grants: [] })).status).toBe(200)
      expect((yield* call("GET", "/sources", { key: team.key })).status).toBe(200)
      expect(codeOf(yield* call("POST", "/sources", { key: team.key, body: {} }))).toEqual([403, "INSUFFICIENT_SCOPE"])
      // What is left of it cannot widen itself.
      expect(codeOf(yield* call("POST", "/project-secrets/rotate", { key: team.key, body: {} }))).toEqual([
        403,
        "INSUFFICIENT_SCOPE"
      ])
      expect((yield* call("DELETE", `${path}/${own.id}`, { key: team.owner })).body.data.status).toBe("revoked")
      expect(codeOf(yield* call("GET", "/sources", { key: team.key }))).toEqual([401, "INVALID_API_KEY"])
      const rotated = yield* call("POST", "/project-secrets/rotate", { key: team.owner, body: { rotate: ["api_key"] } })
      const next = rotated.body.api_key.value
      expect((yield* call("GET", "/sources", { key: next })).status).toBe(200)
      // Its scopes are those of the key, whatever its secret is.
      expect(codeOf(yield* call("POST", "/sources", { key: next, body: {} }))).toEqual([403, "INSUFFICIENT_SCOPE"])
    })
  )

  it.effect("API key of the team is audited but not restricted or changeable before the cut-over", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const team = yield* freshTeam
      const [own] = (yield* call("GET", path, { key: team.owner })).body.data
      yield* sql`update teams set key_policy_cutover = 'pending' where id = ${team.id}`
      yield* sql`update project_api_keys set scopes = '{control:read}' where id = ${own.id}`
      for (const [method, suffix] of [
        ["PATCH", ""],
        ["PUT", ""],
        ["DELETE", ""],
        ["POST", "/revoke"]
      ] as const) {
        const body = method === "DELETE" ? {} : { body: {} }
        const answer = yield* call(method, `${path}/${own.id}${suffix}`, { key: team.owner, ...body })
        expect(codeOf(answer), method).toEqual([409, "LEGACY_POLICY_CUTOVER_INCOMPLETE"])
      }
      // Another key of the team can be changed: one that leaked must not have to wait.
      const { id } = yield* keyWith(team, ["control:read"])
      expect((yield* call("DELETE", `${path}/${id}`, { key: team.owner })).status).toBe(200)

      expect((yield* call("GET", "/sources", { key: team.key })).status).toBe(200)
      expect((yield* call("POST", "/sources", { key: team.key, body: { name: "let-through" } })).status).toBe(200)
      const rows = yield* audit(team, own.id, (rows) => rows.length >= 2)
      expect(sums(rows)).toEqual({
        "allowed read GET:/v1/sources": 1,
        "denied edit legacy_shadow_denied POST:/v1/sources": 1
      })
      yield* sql`update teams set key_policy_cutover = 'complete' where id = ${team.id}`
      expect(codeOf(yield* call("POST", "/sources", { key: team.key, body: {} }))).toEqual([403, "INSUFFICIENT_SCOPE"])
    })
  )
})
