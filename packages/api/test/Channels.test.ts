import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { newId, prefixes } from "@tidegate/model/Ids"
import { call, layer as server, teams } from "./ControlServer.ts"
import { somebody } from "./SignedIn.ts"

const feed = {
  provider_key: "websub",
  definition_key: "entry.added",
  inputs: { url: "https://blog.test/feed" }
}
let count = 0
const created = (provider: object = feed) =>
  Effect.map(
    call("POST", "/sources", { body: { name: `items ${++count}`, type: "PROVIDER", config: { provider } } }),
    ({ body, status }) => {
      expect([status, body.message]).toEqual([200, undefined])
      return body
    }
  )
const plain = () => Effect.map(call("POST", "/sources", { body: { name: `plain ${++count}` } }), ({ body }) => body)

const disable = (id: string) => call("PUT", `/sources/${id}/disable`)

/** An account that the provider refuses. */
const refusedAccount = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.providerAccount, Date.now())
  yield* sql`insert into provider_accounts (id, team_id, provider_key, name, connection, base_url, failed_at, created_at, updated_at)
    values (${id}, ${teams.a.id}, 'watch', ${id}, 'oauth2', 'https://api.test', now(), now(), now())`
  return id
})

const calendar = (provider_account_id: string, definition_key = "calendar.event.changed") => ({
  provider_key: "watch",
  definition_key,
  provider_account_id,
  inputs: {}
})

const isRefused = Effect.fnUntraced(function* (
  code: string,
  status: number,
  ...[method, path, body]: readonly [method: string, path: string, body?: unknown]
) {
  const answer = yield* call(method, path, body === undefined ? {} : { body })
  expect([path, answer.status, answer.body.code]).toEqual([path, status, code])
  return answer.body
})

layer(server, { excludeTestServices: true })("Calls about provider sources", (it) => {
  it.effect("A provider source is created, read, changed and written back under both prefixes", () =>
    Effect.gen(function* () {
      const source = yield* created()
      expect(source).toMatchObject({ type: "PROVIDER", input_type: "provider", delivery_mode: "instant" })
      const read = yield* call("GET", `/v1/sources/${source.id}`)
      expect(read.body).toEqual(source)
      const written = yield* call("PUT", `/sources/${source.id}`, { body: read.body })
      expect([written.status, written.body.config]).toEqual([200, source.config])
      const patched = yield* call("PATCH", `/sources/${source.id}`, {
        body: { config: { provider: { schedule: { interval_minutes: 60 } } } }
      })
      expect(patched.body).toMatchObject({
        schedule: { interval_minutes: 60 },
        config: { provider: { schedule: { interval_minutes: 60 }, inputs: { url: "https://blog.test/feed" } } }
      })
      const { id: _, name: __, ...copied } = read.body
      const copy = yield* call("POST", "/sources", { body: { ...copied, name: "a copy", url: null } })
      expect([copy.status, copy.body.config]).toEqual([200, source.config])
      const listed = yield* call("GET", `/sources?type=PROVIDER&id=${source.id}`)
      expect(listed.body.models).toMatchObject([{ id: source.id, channel: { status: "connecting" } }])
    })
  )

  it.effect("Unknown members of a provider's settings are refused with the nearest name", () =>
    Effect.gen(function* () {
      const settings = { ...feed, scedule: { interval_minutes: 5 }, inputs: { uri: "https://a.test" } }
      const written = { name: "misspelled", type: "PROVIDER", config: { provider: settings } }
      const body = yield* isRefused("VALIDATION_ERROR", 400, "POST", "/sources", written)
      expect(body.data.fields).toEqual([
        { path: "config.provider.inputs.url", message: expect.stringContaining("is required") },
        { path: "config.provider.inputs.uri", message: "is no input of entry.added; did you mean url?" },
        { path: "config.provider.scedule", message: "is not known here; did you mean schedule?" }
      ])
    })
  )

  it.effect("The delivery of a source is changed by PATCH and PUT, and the answer is the source", () =>
    Effect.gen(function* () {
      const source = yield* created()
      const path = `/sources/${source.id}/delivery`
      const polling = yield* call("PATCH", path, {
        body: { delivery_mode: "polling", schedule: { interval_minutes: 15 }, max_failures: 5 }
      })
      expect(polling.status).toBe(200)
      expect(polling.body).toMatchObject({
        id: source.id,
        delivery_mode: "polling",
        definition_key: "entry.added_polling",
        schedule: { interval_minutes: 15 },
        channel: null,
        config: { provider: { max_failures: 5, auto_fallback: true } }
      })
      expect((yield* call("GET", `/sources/${source.id}`)).body).toEqual(polling.body)
      const instant = yield* call("PUT", path, { body: { delivery_mode: "instant" } })
      expect(instant.body).toMatchObject({ delivery_mode: "instant", schedule: { interval_minutes: 15 } })
      const { events } = (yield* call("GET", `/sources/${source.id}/channel-events`)).body
      expect(events.map(({ kind }: { kind: string }) => kind)).toEqual(["delivery_changed", "delivery_changed"])
    })
  )

  it.effect("An impossible delivery is refused: first the unknown source, then the body, then the definition", () =>
    Effect.gen(function* () {
      const source = yield* created()
      const nowhere = `/sources/${newId(prefixes.source, Date.now())}/delivery`
      yield* isRefused("NOT_FOUND", 404, "PATCH", nowhere, { delivery_mode: "both" })
      const invalid = { delivery_mode: "both", schedule: { interval_minutes: 0 } }
      const { data } = yield* isRefused("DELIVERY_INVALID", 400, "PATCH", `/sources/${source.id}/delivery`, invalid)
      expect(data.fields.map(({ path }: { path: string }) => path)).toEqual([
        "delivery_mode",
        "schedule.interval_minutes"
      ])
      yield* isRefused("DELIVERY_INVALID", 400, "PATCH", `/sources/${source.id}/delivery`, {})
      yield* isRefused("VALIDATION_ERROR", 400, "PATCH", `/sources/${source.id}/delivery`, { delivery_mod: "polling" })
      const { id } = yield* plain()
      const body = yield* isRefused("DELIVERY_DEFINITION_UNAVAILABLE", 409, "PATCH", `/sources/${id}/delivery`, {
        delivery_mode: "polling"
      })
      expect(body.data).toEqual({ source_id: id })
      const waiting = yield* created(calendar(yield* refusedAccount, "calendar.event.changed_polling"))
      yield* isRefused("PROVIDER_ACCOUNT_NOT_CONNECTED", 409, "PATCH", `/sources/${waiting.id}/delivery`, {
        delivery_mode: "instant"
      })
    })
  )

  it.effect("Bulk changes each source on its own and lists those that it could not change", () =>
    Effect.gen(function* () {
      const [first, second] = [yield* created(), yield* created()]
      const list = yield* created({ provider_key: "json_feed", definition_key: "item.added", inputs: feed.inputs })
      const { id: webhook } = yield* plain()
      const nowhere = newId(prefixes.source, Date.now())
      const bulk = (body: object) => call("POST", "/sources/channels/bulk", { body })
      const source_ids = [first.id, list.id, webhook, nowhere, "not an id", second.id]
      const polling = yield* bulk({ source_ids, action: "use_polling", schedule: { interval_minutes: 10 } })
      expect([polling.status, polling.body]).toEqual([
        200,
        {
          updated: [first.id, list.id, second.id],
          errors: [
            { id: webhook, code: "DELIVERY_DEFINITION_UNAVAILABLE", error: "the source is not of type PROVIDER" },
            { id: nowhere, code: "NOT_FOUND", error: `source ${nowhere} was not found` },
            { id: "not an id", code: "NOT_FOUND", error: "source not an id was not found" }
          ]
        }
      ])
      expect((yield* call("GET", `/sources/${first.id}`)).body).toMatchObject({
        delivery_mode: "polling",
        schedule: { interval_minutes: 10 }
      })
      const instant = yield* bulk({ source_ids: [first.id, list.id], action: "use_instant" })
      expect(instant.body).toMatchObject({
        updated: [first.id],
        errors: [{ id: list.id, code: "DELIVERY_DEFINITION_UNAVAILABLE" }]
      })
      const retried = yield* bulk({ source_ids: [first.id, second.id], action: "retry" })
      expect(retried.body).toMatchObject({
        updated: [first.id],
        errors: [{ id: second.id, code: "CHANNEL_POLLING_SOURCE" }]
      })
      for (const body of [
        { source_ids: [], action: "retry" },
        { source_ids: [first.id, first.id], action: "retry" },
        { source_ids: [first.id], action: "stop" },
        { source_ids: [first.id], action: "retry", max_failures: 1 }
      ]) {
        yield* isRefused("DELIVERY_INVALID", 400, "POST", "/sources/channels/bulk", body)
      }
    })
  )

  it.effect("A retry is accepted with 202 and is the same one when it is repeated", () =>
    Effect.gen(function* () {
      const source = yield* created()
      const retry = yield* call("POST", `/v1/sources/${source.id}/channel-retry`)
      expect([retry.status, retry.body]).toEqual([
        202,
        { source_id: source.id, status: "connecting", retry_requested_at: expect.any(String) }
      ])
      expect((yield* call("POST", `/sources/${source.id}/channel-retry`)).body).toEqual(retry.body)
      const waiting = yield* created(calendar(yield* refusedAccount))
      const path = `/sources/${waiting.id}/channel-retry`
      const refused = yield* isRefused("PROVIDER_ACCOUNT_NOT_CONNECTED", 409, "POST", path)
      expect(refused.data).toEqual({ source_id: waiting.id })
      yield* disable(waiting.id)
      yield* isRefused("SOURCE_DISABLED", 409, "POST", path)
      yield* call("PATCH", `/sources/${waiting.id}/delivery`, { body: { delivery_mode: "polling" } })
      yield* isRefused("CHANNEL_POLLING_SOURCE", 409, "POST", path)
      yield* isRefused("NOT_FOUND", 404, "POST", "/sources/src_none/channel-retry")
    })
  )

  it.effect("A run is accepted with 202 and listed among the runs of its source", () =>
    Effect.gen(function* () {
      const source = yield* created()
      const run = yield* call("POST", `/sources/${source.id}/run`)
      expect([run.status, run.body]).toEqual([
        202,
        {
          id: expect.stringMatching(/^trun_/),
          source_id: source.id,
          status: "scheduled",
          reason: "manual",
          scheduled_at: expect.any(String)
        }
      ])
      const runs = yield* call("GET", `/sources/${source.id}/runs`)
      expect(runs.body).toMatchObject({
        count: 1,
        models: [{ id: run.body.id, status: "scheduled", started_at: null, finished_at: null, error_code: null }]
      })
      expect((yield* call("GET", `/sources/${source.id}/activity`)).body).toMatchObject({ count: 0, models: [] })
      const { id } = yield* plain()
      yield* isRefused("DELIVERY_DEFINITION_UNAVAILABLE", 409, "POST", `/sources/${id}/run`)
      yield* disable(source.id)
      yield* isRefused("SOURCE_DISABLED", 409, "POST", `/sources/${source.id}/run`)
      for (const path of ["runs", "activity", "channel-events"]) {
        yield* isRefused("NOT_FOUND", 404, "GET", `/sources/${newId(prefixes.source, 1)}/${path}`)
      }
    })
  )

  it.effect("Limits of channel reads are clamped, and what is no whole number is refused", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* created()
      yield* sql`insert into channel_events (id, team_id, source_id, kind, severity, message, created_at, expires_at)
        select 'cev_x' || i, ${teams.a.id}, ${source.id}, 'stopped', 'info', '', now(), now() from generate_series(1, 210) as i`
      const events = (query: string) =>
        Effect.map(call("GET", `/sources/${source.id}/channel-events${query}`), ({ body }) => body.events.length)
      expect(yield* events("")).toBe(100)
      expect(yield* events("?limit=2000")).toBe(200)
      expect(yield* events("?limit=-3")).toBe(1)
      yield* isRefused("VALIDATION_ERROR", 400, "GET", `/sources/${source.id}/channel-events?limit=1.5`)
      const { id } = yield* plain()
      expect((yield* call("GET", `/sources/${id}/channel-events`)).body).toEqual({
        events: [],
        channels: [],
        deliveries: []
      })
      for (const [query, days] of [
        ["", 14],
        ["?days=1", 1],
        ["?days=0", 1],
        ["?days=365", 90]
      ] as const) {
        const { body } = yield* call("GET", `/sources/channel-metrics${query}`)
        expect(body).toMatchObject({ days, to: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), series: expect.any(Array) })
        expect((Date.parse(body.to) - Date.parse(body.from)) / 86_400_000).toBe(days - 1)
      }
      yield* isRefused("VALIDATION_ERROR", 400, "GET", "/sources/channel-metrics?days=soon")
    })
  )

  it.effect("The list of channels is no source, and is narrowed to several statuses", () =>
    Effect.gen(function* () {
      yield* created()
      const { body } = yield* call("GET", "/v1/sources/channels?status=connecting,ERROR")
      expect(body.count).toBeGreaterThan(0)
      expect(body.models.every(({ channel }: { channel: { status: string } }) => channel.status !== "active")).toBe(
        true
      )
      yield* isRefused("VALIDATION_ERROR", 400, "GET", "/sources/channels?status=broken")
    })
  )

  it.effect("A member reads channels and may not change them", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const source = yield* created()
      const { token, user } = yield* somebody
      yield* sql`update memberships set role = 'member' where user_id = ${user}`
      const as = (method: string, path: string, body?: object) =>
        Effect.map(call(method, path, { key: token, body }), ({ body, status }) => [status, body.code])
      expect(yield* as("GET", "/sources/channels")).toEqual([200, undefined])
      expect(yield* as("GET", `/sources/${source.id}/runs`)).toEqual([200, undefined])
      const refused = [403, "ROLE_REQUIRED"]
      expect(yield* as("POST", `/sources/${source.id}/channel-retry`)).toEqual(refused)
      expect(yield* as("POST", `/sources/${source.id}/run`)).toEqual(refused)
      expect(yield* as("PATCH", `/sources/${source.id}/delivery`, { delivery_mode: "polling" })).toEqual(refused)
      const bulk = { source_ids: [source.id], action: "retry" }
      expect(yield* as("POST", "/sources/channels/bulk", bulk)).toEqual(refused)
    })
  )
})
