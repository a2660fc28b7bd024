import { describe, expect, it } from "@effect/vitest"
import { Result, type Schema } from "effect"
import { changeDelivery, bulkDelivery } from "../src/Delivery.ts"
import { source, type SourceFields } from "../src/Source.ts"
import * as Written from "./written.ts"

const id = "src_01kaxg3j7qzfn8m4s2v6w9t5bc"
const created = (input: Schema.Json) => Result.getOrThrow(Written.created(source, input))
const changed = (stored: SourceFields, input: Schema.Json) => Written.changed(source, stored, input, { id })
const updated = (stored: SourceFields, input: Schema.Json) => Result.getOrThrow(changed(stored, input))
const refused = (input: Schema.Json) => Written.faults(Written.created(source, input))
const refusedChange = (stored: SourceFields, input: Schema.Json) => Written.faults(changed(stored, input))

const feed = { provider_key: "websub", definition_key: "entry.added", inputs: { url: "https://blog.test/feed" } }
const calendar = {
  provider_key: "watch",
  definition_key: "calendar.event.changed",
  provider_account_id: "pac_1",
  inputs: { calendar_ids: ["primary", "team"] }
}
const of = (provider: Schema.Json, more: { readonly url?: string } = {}, config: Schema.JsonObject = {}) =>
  Object.assign({ name: "items", type: "PROVIDER", config: Object.assign({ provider }, config) }, more)
const blog = created(of(feed))
const meetings = created(of(calendar))

describe("Source of type PROVIDER", () => {
  it("A provider source is stored with its complete inputs and the defaults of its delivery", () => {
    expect(blog).toStrictEqual({
      name: "items",
      description: null,
      type: "PROVIDER",
      disabled: false,
      slug: null,
      config: {
        auth_type: null,
        allowed_http_methods: ["POST", "PUT", "PATCH", "DELETE"],
        custom_response: null,
        mode: "webhook",
        proxy: null,
        chat_defer_ephemeral: false,
        rate_limit: null,
        rate_limit_period: null,
        provider: {
          provider_key: "websub",
          definition_key: "entry.added",
          provider_account_id: null,
          inputs: { url: "https://blog.test/feed", require_sha256: false },
          schedule: { interval_minutes: 5 },
          auto_fallback: true,
          max_failures: 3,
          restore_after_minutes: 30
        }
      },
      auth: {}
    })
  })

  it("All invalid settings of a provider are reported at once, unknown ones with the nearest name", () => {
    const provider = {
      ...calendar,
      provider_account_id: null,
      inputs: { calendar_ids: "primary", calender_ids: [] },
      schedule: { interval_minutes: 0 },
      auto_fallback: "yes",
      max_failures: 21,
      restore_after_minutes: 1441
    }
    expect(refused(of(provider)).toSorted()).toStrictEqual([
      "config.provider.auto_fallback: must be true, false or null",
      "config.provider.inputs.calendar_ids: must be a list of 1 to 50 ids",
      "config.provider.inputs.calender_ids: is no input of calendar.event.changed; did you mean calendar_ids?",
      "config.provider.max_failures: must be a whole number from 1 to 20",
      "config.provider.provider_account_id: is required: connect an account at Google Calendar and Drive first",
      "config.provider.restore_after_minutes: must be a whole number from 1 to 1440",
      "config.provider.schedule.interval_minutes: must be a whole number from 1 to 1440"
    ])
  })

  it("Provider and definition must be known, and the error suggests the nearest name", () => {
    expect(refused(of(null))).toStrictEqual(["config.provider: is required: the source is of type PROVIDER"])
    expect(refused({ name: "a", type: "PROVIDER" })).toStrictEqual([
      "config.provider: is required: the source is of type PROVIDER"
    ])
    expect(refused(of({}))).toStrictEqual(["config.provider.provider_key: is required: see GET /source-providers"])
    expect(refused(of({ ...feed, provider_key: "webhub" }))).toStrictEqual([
      "config.provider.provider_key: is no provider of sources; did you mean websub?"
    ])
    expect(refused(of({ provider_key: "json_feed" }))).toStrictEqual([
      "config.provider.definition_key: is required: one of item.added"
    ])
    expect(refused(of({ ...feed, definition_key: "entry.add" }))).toStrictEqual([
      "config.provider.definition_key: is no definition of websub; did you mean entry.added?"
    ])
    expect(refused(of({ ...feed, inputs: {} }))).toStrictEqual([
      "config.provider.inputs.url: is required: the absolute http or https URL of a feed"
    ])
    expect(refused(of({ ...feed, provider_account_id: "pac_1" }))).toStrictEqual([
      "config.provider.provider_account_id: must be null: Feeds has no accounts"
    ])
  })

  it("A source with as many targets as allowed is accepted, and one more is refused", () => {
    const watching = (n: number) =>
      of({ ...calendar, inputs: { calendar_ids: Array.from({ length: n }, (_, index) => `c${index}`) } })
    created(watching(50))
    expect(refused(watching(51))).toHaveLength(1)
  })

  it("Settings that have no effect on a provider source are refused", () => {
    const config = {
      auth_type: "API_KEY",
      auth: { api_key: "k" },
      allowed_http_methods: ["GET"],
      custom_response: { body: "thanks" },
      mode: "proxy",
      proxy: { target_url: "https://api.test/" },
      chat_defer_ephemeral: true,
      rate_limit: 5,
      rate_limit_period: "second"
    }
    const effect = "has no effect on a source of type PROVIDER: nobody can send to it"
    expect(refused(of(feed, { url: "https://in.test/e/a-slug" }, config)).toSorted()).toStrictEqual(
      [...Object.keys(config).map((name) => `config.${name}: ${effect}`), `url: ${effect}`].toSorted()
    )
    for (const [name, value] of Object.entries(config)) {
      expect(refusedChange(blog, { [name]: value }), name).toStrictEqual([`config.${name}: ${effect}`])
    }
  })

  it("A provider source that was read can be written back", () => {
    const { config, name, type } = blog
    const url = `https://in.test/e/${id}`
    const read = { id, name, type, url, config: { ...config, auth: {} }, channel: null }
    const beside = { provider_key: "websub", definition_key: "entry.added", schedule: { interval_minutes: 5 } }
    expect(updated(blog, { ...read, ...beside })).toStrictEqual({ ...blog, auth: "unchanged" })
    expect(created({ ...read, url: null, ...beside })).toStrictEqual(blog)
  })

  it("Settings of a provider outside of config.provider are refused with their right place", () => {
    expect(refusedChange(blog, { schedule: { interval_minutes: 7 }, delivery_mode: "polling" })).toStrictEqual([
      "delivery_mode: is changed by PATCH /sources/{id}/delivery",
      "schedule: belongs into config.provider.schedule"
    ])
    expect(refused({ name: "a", type: "PROVIDER", provider: feed })[0]).toBe("provider: belongs into config.provider")
  })

  it("The type PROVIDER is chosen once, and only its sources have a provider", () => {
    const other = ["type: cannot change to or from PROVIDER: create another source"]
    expect(refusedChange(blog, { type: "WEBHOOK" })).toStrictEqual(other)
    const webhook = created({ name: "plain" })
    expect(refusedChange(webhook, { type: "PROVIDER", config: { provider: feed } })).toStrictEqual(other)
    expect(refusedChange(webhook, { config: { provider: feed } })).toStrictEqual([
      "config.provider: is for sources of type PROVIDER only"
    ])
    updated(webhook, { config: { provider: null } })
    expect(refused({ name: "a", type: "PROVIDERS", config: { auth_type: null } })).toStrictEqual([
      "type: is no type of source; did you mean PROVIDER?"
    ])
  })

  it("A change merges the provider by member and replaces the inputs as a whole", () => {
    const provider = (input: Schema.Json) => updated(meetings, { config: { provider: input } }).config.provider
    const stored = meetings.config.provider!
    expect(provider({ max_failures: 5 })).toStrictEqual({ ...stored, max_failures: 5 })
    expect(provider({ schedule: { interval_minutes: 60 } })?.schedule).toStrictEqual({ interval_minutes: 60 })
    expect(provider({ inputs: {} })?.inputs).toStrictEqual({ calendar_ids: ["primary"] })
    expect(provider({ provider_account_id: "pac_2" })).toStrictEqual({ ...stored, provider_account_id: "pac_2" })
    expect(provider({ max_failures: null, schedule: null })).toStrictEqual(stored)
    expect(updated(meetings, { name: "renamed" })).toStrictEqual({ ...meetings, name: "renamed", auth: "unchanged" })
  })

  it("A change of the trigger needs inputs that fit it, and the provider stays", () => {
    const drive = { definition_key: "drive.changed" }
    expect(refusedChange(meetings, { config: { provider: drive } })).toStrictEqual([
      "config.provider.inputs.calendar_ids: is no input of drive.changed"
    ])
    expect(updated(meetings, { config: { provider: { ...drive, inputs: {} } } }).config.provider).toMatchObject(drive)
    expect(refusedChange(meetings, { config: { provider: { provider_key: "websub" } } })).toStrictEqual([
      "config.provider.provider_key: cannot be changed: create another source"
    ])
  })
})

describe("Delivery of a provider source", () => {
  const delivered = (stored: SourceFields, input: Schema.JsonObject) => changeDelivery(input, id)(stored)
  const failure = (result: Result.Result<unknown, { readonly code: string; readonly data?: Schema.Json }>) =>
    Result.isFailure(result) ? [result.failure.code, result.failure.data] : expect.fail("it was accepted")

  it("A change of the delivery mode selects the other definition of the same trigger", () => {
    const polling = Result.getOrThrow(
      delivered(blog, { delivery_mode: "polling", schedule: { interval_minutes: 15 }, max_failures: 5 })
    )
    const { provider } = blog.config
    expect(polling).toStrictEqual({
      ...blog,
      config: {
        ...blog.config,
        provider: {
          ...provider,
          definition_key: "entry.added_polling",
          schedule: { interval_minutes: 15 },
          max_failures: 5
        }
      },
      auth: "unchanged"
    })
    const back = Result.getOrThrow(delivered({ ...polling, auth: {} }, { delivery_mode: "instant" }))
    expect(back.config.provider?.definition_key).toBe("entry.added")
    const same = Result.getOrThrow(delivered(blog, { delivery_mode: "instant", restore_after_minutes: 60 }))
    expect(same.config.provider).toStrictEqual({ ...provider, restore_after_minutes: 60 })
  })

  it("A delivery without a definition of that mode is refused", () => {
    const list = created(
      of({ provider_key: "json_feed", definition_key: "item.added", inputs: { url: "https://a.test" } })
    )
    const unavailable = ["DELIVERY_DEFINITION_UNAVAILABLE", { source_id: id }]
    expect(failure(delivered(list, { delivery_mode: "instant" }))).toStrictEqual(unavailable)
    expect(Result.isSuccess(delivered(list, { delivery_mode: "polling" }))).toBe(true)
    for (const body of [{ delivery_mode: "polling" }, { max_failures: 1 }]) {
      expect(failure(delivered(created({ name: "plain" }), body))).toStrictEqual(unavailable)
    }
  })

  it("An empty or invalid delivery is refused with the fields that are wrong", () => {
    const fields = (input: Schema.JsonObject) => {
      const [code, data] = failure(delivered(blog, input))
      expect(code).toBe("DELIVERY_INVALID")
      return (data as { readonly fields: ReadonlyArray<{ path: string }> }).fields.map(({ path }) => path)
    }
    expect(fields({})).toStrictEqual(["body"])
    expect(fields({ delivery_mode: "both", schedule: { interval_minutes: 1441 }, max_failures: 0 })).toStrictEqual([
      "delivery_mode",
      "schedule.interval_minutes",
      "max_failures"
    ])
  })

  it("A bulk change takes 1 to 100 different ids, and a retry takes no settings", () => {
    const ids = (n: number) => Array.from({ length: n }, (_, index) => `src_${index}`)
    expect(
      bulkDelivery({ source_ids: ids(100), action: "use_polling", schedule: { interval_minutes: 10 } })
    ).toStrictEqual(
      Result.succeed({ sources: ids(100), delivery: { delivery_mode: "polling", schedule: { interval_minutes: 10 } } })
    )
    expect(bulkDelivery({ source_ids: ids(1), action: "retry" })).toStrictEqual(
      Result.succeed({ sources: ids(1), delivery: null })
    )
    for (const body of [
      { source_ids: [], action: "retry" },
      { source_ids: ids(101), action: "retry" },
      { source_ids: ["src_1", "src_1"], action: "retry" },
      { source_ids: [1], action: "retry" },
      { source_ids: ids(1), action: "pause" },
      { source_ids: ids(1), action: "retry", max_failures: 2 },
      { source_ids: ids(1), action: "use_instant", max_failures: 0 }
    ]) {
      expect(failure(bulkDelivery(body))[0], JSON.stringify(body)).toBe("DELIVERY_INVALID")
    }
  })
})
