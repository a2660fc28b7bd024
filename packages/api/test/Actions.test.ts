import { expect, layer } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { ActionProviders } from "@tidegate/model/ActionCatalog"
import { newId, prefixes } from "@tidegate/model/Ids"
import { storeActionHold } from "@tidegate/storage/workflows/ActionHolds"
import { loadAction } from "@tidegate/storage/workflows/Actions"
import { currentActions, pinnedActions } from "@tidegate/storage/workflows/ActionVersions"
import { call, layer as server, teams } from "./ControlServer.ts"

const team = teams.a.id
const unknown = newId(prefixes.action, 1_700_000_000_000)
let made = 0
const named = (name: string) => `${name}-${++made}`

const credentials = { token: "a-token-that-nobody-reads" }
const body = (name: string) => ({
  name,
  provider_key: "http",
  action_key: "request",
  auth_mode: "bearer",
  credentials,
  inputs: { method: "POST", url: "https://ledger.example.com/entries" },
  rate_limit: 5
})

const fieldsOf = (answer: { readonly body: { readonly data?: { readonly fields?: unknown } } }) =>
  answer.body.data?.fields

layer(server, { excludeTestServices: true })("Saved actions", (it) => {
  for (const prefix of ["", "/v1"]) {
    it.effect(`Action can be created, read, changed, disabled and deleted under ${prefix}/actions`, () =>
      Effect.gen(function* () {
        const list = `${prefix}/actions`
        const name = named("life")
        const created = yield* call("POST", list, { body: body(name) })
        expect(created).toMatchObject({
          status: 201,
          body: {
            id: expect.stringMatching(/^act_/),
            team_id: team,
            name,
            type: "ACTION",
            status: "enabled",
            disabled_at: null,
            held_until: null,
            provider_key: "http",
            action_key: "request",
            config: {
              auth_mode: "bearer",
              provider_account_id: null,
              credentials_configured: true,
              schema_version: "1.0.0",
              schema_provenance: "catalog",
              inputs: { method: "POST", url: "https://ledger.example.com/entries" },
              rate_limit: 5,
              rate_limit_period: "second"
            },
            workflow_steps_count: 0
          }
        })
        const { id } = created.body
        const one = `${list}/${id}`
        expect(yield* call("GET", one)).toMatchObject({ status: 200, body: created.body })
        expect((yield* call("GET", list)).body.models.map((model: { readonly id: string }) => model.id)).toContain(id)
        expect(yield* call("POST", list, { body: body(name) })).toMatchObject({
          status: 409,
          body: { code: "RESOURCE_ALREADY_EXISTS", data: { id, resource_type: "action" } }
        })
        for (const method of ["PATCH", "PUT"]) {
          const inputs = { url: `https://ledger.example.com/${method}` }
          expect(yield* call(method, one, { body: { inputs } })).toMatchObject({
            status: 200,
            body: { id, name, config: { inputs, credentials_configured: true, rate_limit: 5 } }
          })
        }
        // What was read can be written.
        const read = (yield* call("GET", one)).body
        expect(yield* call("PATCH", one, { body: read })).toMatchObject({ status: 200, body: { config: read.config } })
        for (const method of ["PUT", "POST"]) {
          expect(yield* call(method, `${one}/disable`)).toMatchObject({
            status: 200,
            body: { status: "disabled", disabled_at: expect.any(String) }
          })
          expect(yield* call(method, `${one}/enable`)).toMatchObject({ status: 200, body: { status: "enabled" } })
        }
        expect(yield* call("PATCH", one, { body: { status: "disabled" } })).toMatchObject({
          body: { status: "disabled" }
        })
        expect(yield* call("DELETE", one)).toMatchObject({ status: 200, body: { id, deleted: true } })
        expect((yield* call("GET", one)).status).toBe(404)
      })
    )
  }

  it.effect("Credentials of an action are stored encrypted, and only its calls can read them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { body: created } = yield* call("POST", "/actions", { body: body(named("sealed")) })
      const [row] = yield* sql<Record<string, unknown>>`select * from actions where id = ${created.id}`
      expect(JSON.stringify([row, created])).not.toContain(credentials.token)
      expect(row!["credentials"]).toMatch(/^v\d+\./)
      expect(yield* loadAction(team, created.id)).toMatchObject({
        credentials: { mode: "bearer", values: credentials },
        disabled: false,
        rate_limit: 5,
        rate_limit_period: "second"
      })
      expect(yield* loadAction(teams.b.id, created.id)).toBeNull()
      const basic = { auth_mode: "basic", credentials: { username: "ada", password: "another-secret" } }
      yield* call("PATCH", `/actions/${created.id}`, { body: basic })
      expect(yield* loadAction(team, created.id)).toMatchObject({
        credentials: { mode: "basic", values: basic.credentials }
      })
      yield* call("PATCH", `/actions/${created.id}`, { body: { auth_mode: "none" } })
      expect((yield* call("GET", `/actions/${created.id}`)).body.config.credentials_configured).toBe(false)
      yield* call("DELETE", `/actions/${created.id}`)
      expect(yield* loadAction(team, created.id)).toBeNull()
    })
  )

  it.effect(
    "Action with a credential in its inputs is refused, and an older action with one is shown with a mask instead",
    () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const secret = "s3cr3t-in-an-input"
        const { body: created } = yield* call("POST", "/actions", { body: body(named("inputs")) })
        const one = `/actions/${created.id}`
        for (const [input, value] of [
          ["headers", { "x-api-key": secret }],
          ["url", `https://ledger.example.com/entries?api_key=${secret}`],
          ["body", { login: { password: secret } }]
        ] as const) {
          const inputs = { ...body("").inputs, [input]: value }
          const path = expect.stringMatching(new RegExp(`^config\\.inputs\\.${input}`))
          for (const answer of [
            yield* call("POST", "/actions", { body: { ...body(named("held")), inputs } }),
            yield* call("PATCH", one, { body: { inputs } })
          ]) {
            expect([answer.status, fieldsOf(answer)]).toEqual([400, [expect.objectContaining({ path })]])
            expect(JSON.stringify(answer.body)).not.toContain(secret)
          }
        }
        // As the version before stored it: it goes on until its inputs are changed, and the mask is taken for none.
        yield* sql`
        update actions set config = jsonb_set(config::jsonb, '{inputs,headers}', ${JSON.stringify({ "x-api-key": secret })}::jsonb)
        where id = ${created.id}`
        const { body: shown } = yield* call("GET", one)
        expect(shown.config.inputs.headers).toEqual({ "x-api-key": "[REDACTED]" })
        expect((yield* call("PATCH", one, { body: { name: named("renamed") } })).status).toBe(200)
        expect((yield* call("PATCH", one, { body: { inputs: shown.config.inputs } })).status).toBe(400)
        expect(yield* loadAction(team, created.id)).toMatchObject({ credentials: { values: credentials } })
      })
  )

  it.effect("Pause time of an action's target is shown as held_until and ends when the action is changed", () =>
    Effect.gen(function* () {
      const { body: action } = yield* call("POST", "/actions", { body: body(named("held")) })
      const one = `/actions/${action.id}`
      const now = Date.now()
      const until = new Date(now + 60_000).toISOString()
      const hold = storeActionHold(team, action.id, now + 60_000, now)
      const shown = Effect.map(call("GET", one), ({ body }) => body.held_until)
      yield* hold
      // An earlier end takes nothing from a later one; and nobody but its team holds it.
      yield* storeActionHold(team, action.id, now + 30_000, now)
      yield* storeActionHold(teams.b.id, action.id, now + 90_000, now)
      expect(yield* shown).toBe(until)
      const listed: ReadonlyArray<{ readonly id: string; readonly held_until: string }> = (yield* call(
        "GET",
        "/actions"
      )).body.models
      expect(listed.find(({ id }) => id === action.id)?.held_until).toBe(until)
      expect(yield* loadAction(team, action.id)).toMatchObject({ heldUntil: now + 60_000 })
      for (const [path, change] of [
        ["", { inputs: { url: "https://ledger.example.com/other" } }],
        ["", { credentials: { token: "another-token" } }],
        ["/disable", undefined]
      ] as const) {
        yield* hold
        expect(yield* shown).toBe(until)
        const changed = yield* call(change === undefined ? "POST" : "PATCH", one + path, { body: change })
        expect(changed).toMatchObject({ status: 200, body: { held_until: null } })
        expect(yield* loadAction(team, action.id)).toMatchObject({ heldUntil: 0 })
      }
      // What is over is not shown.
      const sql = yield* SqlClient.SqlClient
      yield* hold
      yield* sql`update action_holds set held_until = now() - interval '1 second' where target = ${action.id}`
      expect(yield* shown).toBeNull()
    })
  )

  it.effect("Credentials of an action are bound to the origin for which they were written", () =>
    Effect.gen(function* () {
      const elsewhere = { url: "https://{{trigger.body.host}}/entries" }
      for (const inputs of [elsewhere, {}, { url: "https://ledger.example.com{{trigger.body.rest}}" }]) {
        const answer = yield* call("POST", "/actions", { body: { ...body(named("open")), inputs } })
        expect([answer.status, fieldsOf(answer)]).toEqual([
          400,
          [expect.objectContaining({ path: "config.inputs.url" })]
        ])
      }
      const bare = { auth_mode: "none", credentials: {}, inputs: elsewhere }
      expect((yield* call("POST", "/actions", { body: { ...body(named("bare")), ...bare } })).status).toBe(201)

      const { body: saved } = yield* call("POST", "/actions", { body: body(named("stays")) })
      const moved = { inputs: { url: "https://other.example.com/entries" } }
      for (const method of ["PATCH", "PUT"]) {
        const answer = yield* call(method, `/actions/${saved.id}`, { body: moved })
        expect([answer.status, fieldsOf(answer)]).toEqual([
          400,
          [expect.objectContaining({ path: "config.credentials" })]
        ])
      }
      const table = {
        ...body(named("table")),
        provider_key: "sql_database",
        action_key: "send",
        auth_mode: "database_password",
        credentials: { username: "ada", password: "a-password-of-hers" },
        inputs: { host: "db.example.com", port: "{{trigger.body.port}}", database: "shop", table: "orders" }
      }
      expect((yield* call("POST", "/actions", { body: table })).status).toBe(400)
      const rows = { ...table, name: named("rows"), inputs: { host: "db.example.com", database: "a", table: "b" } }
      const { body: database } = yield* call("POST", "/actions", { body: rows })
      const inTheClear = { inputs: { ...rows.inputs, tls_mode: "disable" } }
      const weaker = yield* call("PATCH", `/actions/${database.id}`, { body: inTheClear })
      expect([weaker.status, fieldsOf(weaker)]).toEqual([
        400,
        [expect.objectContaining({ path: "config.credentials" })]
      ])

      const { body: source } = yield* call("POST", "/sources", { body: { name: named("shop") } })
      const edges = [{ source_type: "trigger", target_step_id: "call" }]
      const flow = (url: string) => ({
        name: named("flow"),
        source_id: source.id,
        steps: [{ id: "call", kind: "action", resource_id: saved.id, invocation_inputs: { url } }],
        edges
      })
      const toDatabase = { id: "call", kind: "action", resource_id: database.id }
      for (const [inputs, field] of [
        [{ tls_mode: "disable" }, "tls_mode"],
        [{ database: "c", port: 6543 }, "port"]
      ] as const) {
        const steps = [{ ...toDatabase, invocation_inputs: { payload: {}, ...inputs } }]
        const refused = yield* call("POST", "/workflows", { body: { ...flow("https://ledger.example.com"), steps } })
        expect(refused).toMatchObject({ status: 400, body: { code: "WORKFLOW_GRAPH_INVALID" } })
        expect(JSON.stringify(refused.body)).toContain(`"invocation_inputs.${field}"`)
      }
      expect(yield* call("POST", "/workflows", { body: flow("https://other.example.com/entries") })).toMatchObject({
        status: 400,
        body: { data: { issues: [{ code: "STEP_CONFIG_INVALID", field: "invocation_inputs.url" }] } }
      })
      for (const url of ["https://ledger.example.com/{{trigger.body.id}}", "{{trigger.body.url}}"]) {
        expect((yield* call("POST", "/workflows", { body: flow(url) })).status).toBe(200)
      }

      const anew = { ...moved, credentials: { token: "another-token-of-it" } }
      expect((yield* call("PATCH", `/actions/${saved.id}`, { body: anew })).status).toBe(200)
    })
  )

  it.effect("Refused action reports every fault and repeats no credential", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<readonly [change: object, path: string]> = [
        [{ provider_key: "nobody" }, "provider_key"],
        [{ action_key: "nothing" }, "action_key"],
        [{ auth_mode: "magic" }, "config.auth_mode"],
        [{ credentials: {} }, "config.credentials.token"],
        [{ credentials: { token: "x y\u0007secret-of-mine" } }, "config.credentials.token"],
        [{ credentials: { token: "secret-of-mine", extra: "secret-of-mine" } }, "config.credentials.extra"],
        ...["Host", "content-length", "Connection", "Gateway-Loop", "X-Gateway-Event-Id", "Idempotency-Key"].flatMap(
          (header): ReadonlyArray<readonly [object, string]> => [
            [
              { auth_mode: "custom_header", credentials: { header_name: header, value: "secret-of-mine" } },
              "config.credentials.header_name"
            ],
            [
              { auth_mode: "api_key", credentials: { name: header, api_key: "secret-of-mine" } },
              "config.credentials.name"
            ]
          ]
        ),
        [{ provider_account_id: "pac_1" }, "config.provider_account_id"],
        [{ inputs: { url: "nowhere" } }, "config.inputs.url"],
        [{ inputs: { uri: "https://example.com" } }, "config.inputs.uri"],
        [{ inputs: { url: "{{steps.a.output}}" } }, "config.inputs.url"],
        [{ rate_limit: 0 }, "config.rate_limit"],
        [{ rate_limit_period: "week" }, "config.rate_limit_period"],
        [{ name: "x".repeat(129) }, "name"],
        [{ status: "asleep" }, "status"]
      ]
      for (const [change, path] of wrong) {
        const answer = yield* call("POST", "/actions", { body: { ...body(named("wrong")), ...change } })
        expect([change, answer.status]).toEqual([change, 400])
        expect([change, fieldsOf(answer)]).toEqual([
          change,
          expect.arrayContaining([expect.objectContaining({ path })])
        ])
        expect(JSON.stringify(answer.body)).not.toMatch(/secret-of-mine|a-token-that/)
      }
      const { body: created } = yield* call("POST", "/actions", { body: body(named("fixed")) })
      for (const change of [{ provider_key: "json_feed" }, { action_key: "other" }]) {
        expect((yield* call("PATCH", `/actions/${created.id}`, { body: change })).status).toBe(400)
      }
      expect((yield* call("GET", `/actions/${unknown}`)).status).toBe(404)
    })
  )

  it.effect("Formatter operation and a destination type can be saved as actions", () =>
    Effect.gen(function* () {
      const formatter = { provider_key: "formatter", action_key: "text.titlecase", inputs: { input: "a tale" } }
      expect(yield* call("POST", "/actions", { body: { name: named("title"), ...formatter } })).toMatchObject({
        status: 201,
        body: { config: { auth_mode: "none", credentials_configured: false } }
      })
      const chat = {
        provider_key: "chat_webhook",
        action_key: "send",
        credentials: { url: "https://discord.com/api/webhooks/1234/token-of-it" },
        inputs: { content_template: "Order {{trigger.body.id}}" }
      }
      const created = yield* call("POST", "/actions", { body: { name: named("chat"), ...chat } })
      expect(created).toMatchObject({ status: 201, body: { config: { credentials_configured: true } } })
      expect(JSON.stringify(created.body)).not.toContain("token-of-it")
    })
  )

  it.effect("Action in use by a workflow cannot be deleted, and runs keep the version that they started with", () =>
    Effect.gen(function* () {
      const { body: source } = yield* call("POST", "/sources", { body: { name: named("shop") } })
      const { body: saved } = yield* call("POST", "/actions", { body: body(named("used")) })
      const step = {
        id: "call",
        kind: "action",
        resource_id: saved.id,
        invocation_inputs: { body: "{{trigger.body}}" }
      }
      const edges = [{ source_type: "trigger", target_step_id: "call" }]
      const flow = { name: named("flow"), source_id: source.id, steps: [step], edges }
      const workflow = yield* call("POST", "/workflows", { body: flow })
      expect(workflow).toMatchObject({ status: 200, body: { capabilities: { runtime_executable: true } } })
      expect((yield* call("GET", `/actions/${saved.id}`)).body.workflow_steps_count).toBe(1)
      expect(yield* call("DELETE", `/actions/${saved.id}`)).toMatchObject({
        status: 409,
        body: { code: "RESOURCE_IN_USE", data: { workflows: [workflow.body.id] } }
      })
      const wrong = { ...flow, name: named("flow"), steps: [{ ...step, invocation_inputs: { nonsense: 1 } }] }
      expect(yield* call("POST", "/workflows", { body: wrong })).toMatchObject({
        status: 400,
        body: { code: "WORKFLOW_GRAPH_INVALID", data: { issues: [{ field: "invocation_inputs.nonsense" }] } }
      })
      const strange = { ...flow, name: named("flow"), steps: [{ ...step, resource_id: unknown }] }
      expect(yield* call("POST", "/workflows", { body: strange })).toMatchObject({
        status: 400,
        body: { data: { issues: [{ code: "RESOURCE_NOT_FOUND" }] } }
      })

      const first = (yield* currentActions(team, [saved.id])).get(saved.id)!
      yield* call("PATCH", `/actions/${saved.id}`, { body: { inputs: { url: "https://ledger.example.com/other" } } })
      const second = (yield* currentActions(team, [saved.id])).get(saved.id)!
      expect([first.revision, second.revision]).toEqual([1, 2])
      expect(second.content_hash).not.toBe(first.content_hash)
      const pins = yield* pinnedActions(team, [{ id: saved.id, revision: 1 }])
      expect(pins.get(saved.id)).toMatchObject({ inputs: body("").inputs, content_hash: first.content_hash })
      yield* call("PATCH", `/actions/${saved.id}`, { body: { rate_limit: 7 } })
      expect((yield* currentActions(team, [saved.id])).get(saved.id)?.revision).toBe(2)

      yield* call("PUT", `/actions/${saved.id}/disable`)
      expect(yield* call("GET", `/workflows/${workflow.body.id}`)).toMatchObject({
        body: { capabilities: { runtime_executable: false, runtime_issue: { code: "workflow_action_disabled" } } }
      })
      for (const [body, status] of [
        [{ name: named("flow") }, 200],
        [{ status: "paused" }, 200],
        [{ status: "active" }, 409]
      ] as const) {
        expect((yield* call("PATCH", `/workflows/${workflow.body.id}`, { body })).status).toBe(status)
      }
      yield* call("DELETE", `/workflows/${workflow.body.id}`)
      expect((yield* call("DELETE", `/actions/${saved.id}`)).status).toBe(200)
    })
  )

  it.effect("Action catalog lists every provider and is not sent again to a caller that has it", () =>
    Effect.gen(function* () {
      const { body: catalog, headers, status } = yield* call("GET", "/v1/action-providers")
      expect(status).toBe(200)
      const { count, models } = Schema.decodeUnknownSync(ActionProviders)(catalog)
      expect(models).toHaveLength(count)
      const keys = models.map(({ key }) => key)
      expect(keys).toEqual(expect.arrayContaining(["formatter", "http", "gateway", "json_feed", "storage"]))
      expect(headers.get("etag")).toMatch(/^"[0-9a-f]{32}"$/)
      const again = yield* call("GET", "/action-providers", { headers: { "if-none-match": headers.get("etag")! } })
      expect(again.status).toBe(304)
    })
  )

  it.effect("Options for action inputs come in pages and belong to the caller's team alone", () =>
    Effect.gen(function* () {
      const shop = named("choice")
      const ids: Array<string> = []
      for (const end of ["a", "b", "c"]) {
        ids.push((yield* call("POST", "/sources", { body: { name: `${shop}-${end}` } })).body.id)
      }
      const asked = { provider_key: "gateway", resource: "sources", query: shop.toUpperCase(), limit: 2 }
      const first = yield* call("POST", "/action-options", { body: asked })
      expect(first).toMatchObject({
        status: 200,
        body: { models: ids.slice(0, 2).map((id) => ({ id })), next_cursor: expect.any(String) }
      })
      const rest = yield* call("POST", "/v1/action-options", { body: { ...asked, cursor: first.body.next_cursor } })
      expect(rest.body).toMatchObject({ models: [{ id: ids[2], name: `${shop}-c` }], next_cursor: null })
      const others = yield* call("POST", "/action-options", { body: asked, key: teams.b.key })
      expect(others.body).toEqual({ models: [], next_cursor: null })

      const zones = { provider_key: "formatter", resource: "time_zones", query: "berlin" }
      expect((yield* call("POST", "/action-options", { body: zones })).body.models).toEqual([
        { id: "Europe/Berlin", name: "Europe/Berlin", description: null }
      ])
      for (const [resource, id] of [
        ["currencies", "EUR"],
        ["countries", "DE"],
        ["locales", "de"]
      ]) {
        const { body: found } = yield* call("POST", "/action-options", {
          body: { provider_key: "formatter", resource, query: id }
        })
        expect(found.models.map((model: { readonly id: string }) => model.id)).toContain(id)
      }

      const refused = [
        [{ resource: "moons" }, 422, "ACTION_OPTIONS_INVALID"],
        [{ provider_key: "nobody" }, 422, "ACTION_OPTIONS_INVALID"],
        [{ resource: "__proto__" }, 422, "ACTION_OPTIONS_INVALID"],
        [{ provider_account_id: "pac_1" }, 409, "PROVIDER_ACCOUNT_NOT_CONNECTED"],
        [{ action_id: unknown }, 404, "NOT_FOUND"],
        [{ cursor: "nonsense" }, 400, "INVALID_CURSOR"],
        [{ limit: 101 }, 400, "VALIDATION_ERROR"]
      ] as const
      for (const [change, status, code] of refused) {
        expect(yield* call("POST", "/action-options", { body: { ...asked, ...change } })).toMatchObject({
          status,
          body: { code }
        })
      }
    })
  )

  it.effect("Versions of an action are limited to the last hundred", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const saved = (yield* call("POST", "/actions", { body: body(named("often")) })).body
      yield* sql`insert into action_versions (action_id, version, team_id, schema_version, inputs, content_hash, superseded_at)
        select action_id, n, team_id, schema_version, inputs, content_hash, now() from action_versions, generate_series(2, 149) n
        where action_id = ${saved.id}`
      yield* sql`update actions set version = 150 where id = ${saved.id}`
      const change = { inputs: { ...saved.config.inputs, method: "PUT" } }
      expect((yield* call("PATCH", `/actions/${saved.id}`, { body: change })).status).toBe(200)
      const [kept] = yield* sql<{ first: number; last: number; count: number }>`
        select min(version) as first, max(version) as last, count(*)::int4 as count from action_versions where action_id = ${saved.id}`
      expect(kept).toEqual({ first: 52, last: 151, count: 99 })
    })
  )
})
