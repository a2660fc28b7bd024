import { gunzipSync, gzipSync } from "node:zlib"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { type AttemptFacts, type BatchCalls, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { event, faultsOf, opened } from "./Opened.ts"
import { startStore, storeKey } from "./StoreServer.ts"

/** Several events in one object, as a store that recomputes signatures takes it. */

let store: Awaited<ReturnType<typeof startStore>>
beforeAll(async () => {
  store = await startStore(["archive"])
})
afterAll(() => store.close())

const base = { region: "eu-central-1", bucket: "archive" }
const batchOf = (config: Config = {}, batch: Config = {}, isSigned = true) => {
  const settings = isSigned ? { access_key_id: storeKey.accessKeyId, secret_access_key: storeKey.secretAccessKey } : {}
  const written = { ...base, endpoint: store.origin, force_path_style: true, batch: { ...batch }, ...config }
  const sender = opened("OBJECT_STORE_S", written, { headers: {}, signing: null, settings })
  return { sender, batch: sender.batch! }
}
const faults = (config: Config) => faultsOf("OBJECT_STORE_S", { ...base, ...config })

interface One {
  readonly message: Message
  readonly facts: AttemptFacts
}
const one = (eventId: string, message: Message, createdAt = Date.UTC(2026, 0, 31, 23, 59)): One => ({
  message,
  facts: factsOf(message, { eventId, createdAt, timestampSeconds: Math.floor(Date.now() / 1_000) })
})
const raw = (body: Uint8Array, headers: Message["headers"] = {}): Message => event("", { body, headers })

const callOf = (batch: BatchCalls, events: ReadonlyArray<One>) => {
  const parts = events.map(({ facts, message }) => {
    const part = batch.part(message, facts)
    if (part === null || part instanceof Refusal) throw new Error("it is in no batch")
    return part
  })
  return {
    parts,
    request: batch.call(
      parts,
      events.map(({ facts }) => facts)
    )
  }
}
const linesOf = (body: Uint8Array): ReadonlyArray<string> => Buffer.from(body).toString().split("\n")

/** Puts them into the store; the answer is judged. */
const put = async ({ batch, sender }: ReturnType<typeof batchOf>, events: ReadonlyArray<One>) => {
  const complete = batch.complete ?? sender.complete!
  const { body, headers, method, url } = await complete(callOf(batch, events).request, events[0]!.facts)
  const sent = new Headers(headers.flatMap((name, i) => (i % 2 === 0 ? [[name, headers[i + 1]!] as const] : [])))
  const answer = await fetch(url, { method, headers: sent, body: Buffer.from(body) })
  const told = { status: answer.status, headers: Object.fromEntries(answer.headers), bodyTruncated: false }
  return { url, judged: batch.judge({ ...told, body: Buffer.from(await answer.arrayBuffer()) }, events.length) }
}

const answerOf = (status: number, code: string) => ({
  status,
  headers: {},
  body: Buffer.from(`<Error><Code>${code}</Code></Error>`),
  bodyTruncated: false
})

describe("Batch of an object store", () => {
  it("Events of a batch are lines of one signed object, under a key with the date of the oldest one", async () => {
    const events = [
      one("evt_1", event({ id: 1 }), Date.UTC(2026, 1, 1, 0, 1)),
      one("evt_2", event({ id: 2 }), Date.UTC(2026, 0, 31, 23, 59))
    ]
    const { judged, url } = await put(batchOf(), events)
    expect(judged!.map(({ verdict }) => verdict)).toEqual(["successful", "successful"])
    const key = new URL(url).pathname.slice(1)
    expect(key).toMatch(/^archive\/batches\/tm_1\/des_1\/2026\/01\/31\/23\/[\da-f]{32}\.ndjson$/)
    const { body, headers } = store.objects.get(key)!
    const [first, second, end, ...more] = linesOf(body)
    expect([first, second].map((line) => JSON.parse(line!))).toMatchObject([
      { event_id: "evt_1", payload: { id: 1 } },
      { event_id: "evt_2", payload: { id: 2 } }
    ])
    expect([end, more]).toEqual(["", []])
    expect(headers).toMatchObject({ "content-type": "application/x-ndjson", "x-amz-meta-events": "2" })
    expect(headers["content-encoding"]).toBeUndefined()
  })

  it("Same events make the same key in any order, and other events another one", () => {
    const { batch } = batchOf()
    const [a, b, c] = ["evt_1", "evt_2", "evt_3"].map((id) => one(id, event({ id }))) as [One, One, One]
    const urlOf = (...events: ReadonlyArray<One>) => callOf(batch, events).request.url
    expect(urlOf(b, a)).toBe(urlOf(a, b))
    expect(new Set([urlOf(a, b), urlOf(a), urlOf(b), urlOf(a, b, c), urlOf(a, c)]).size).toBe(5)
  })

  it("Object is compressed where that is set, and signed as it is sent", async () => {
    const events = ["evt_1", "evt_2"].map((id) => one(id, event({ id, text: "x".repeat(10_000) })))
    const { judged, url } = await put(batchOf({}, { compression: "gzip" }), events)
    expect(judged!.map(({ verdict }) => verdict)).toEqual(["successful", "successful"])
    expect(url).toMatch(/\.ndjson\.gz$/)
    const { body, headers } = store.objects.get(new URL(url).pathname.slice(1))!
    expect(headers["content-encoding"]).toBe("gzip")
    expect(body.length).toBeLessThan(2_000)
    expect(
      linesOf(gunzipSync(body))
        .slice(0, 2)
        .map((line) => JSON.parse(line).event_id)
    ).toEqual(["evt_1", "evt_2"])
    const { batch } = batchOf({}, { compression: "gzip" }, false)
    const unsigned = await batch.complete!(callOf(batch, events).request, events[0]!.facts)
    expect(gunzipSync(unsigned.body).length).toBeGreaterThan(20_000)
  })

  it("JSON is on one line with its digits as written, and what is no JSON is base64", () => {
    const large = Buffer.from(JSON.stringify("x".repeat(1024 * 1024)))
    const zipped = gzipSync('{"a":1}')
    const events = [
      one("evt_1", raw(Buffer.from('{\r\n  "id": 12345678901234567890,\n"text": "a\\nb"\n}'))),
      one("evt_2", raw(Buffer.from("two\nlines"))),
      one("evt_3", raw(Buffer.from([0xff, 0x0a, 0]))),
      one("evt_4", raw(zipped, { "content-encoding": "gzip" })),
      one("evt_5", raw(Buffer.alloc(0))),
      one("evt_6", raw(large))
    ]
    const { batch } = batchOf({ include_metadata: false })
    const { parts, request } = callOf(batch, events)
    const lines = linesOf(request.body)
    expect(lines).toHaveLength(7)
    expect(lines[0]).toBe('{   "id": 12345678901234567890, "text": "a\\nb" }')
    const base64 = (body: Uint8Array) => ({ payload_encoding: "base64", payload: Buffer.from(body).toString("base64") })
    expect(lines.slice(1, 6).map((line) => JSON.parse(line))).toEqual([
      base64(Buffer.from("two\nlines")),
      base64(Buffer.from([0xff, 0x0a, 0])),
      { payload_content_encoding: "gzip", ...base64(zipped) },
      base64(Buffer.alloc(0)),
      base64(large)
    ])
    expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(request.body.length)
    expect(request.headers.some((name) => name.startsWith("x-amz-meta-"))).toBe(false)
    const named = linesOf(callOf(batchOf().batch, events).request.body).slice(0, 6)
    expect(named.map((line) => JSON.parse(line).event_id)).toEqual(events.map(({ facts }) => facts.eventId))
    expect(named[0]).toContain('"id": 12345678901234567890')
  })

  it("Line has what body_template makes, and an event of which it makes no JSON is refused alone", () => {
    const { batch } = batchOf({ body_template: '{\n"n": {{payload.n}}\n}' })
    expect(callOf(batch, [one("evt_1", event('{"n":12345678901234567890}'))]).parts[0]!.text).toBe(
      '{"n":12345678901234567890}'
    )
    const { facts, message } = one("evt_2", event({}))
    const spoilt = batchOf({ body_template: '{"a":{{payload.a}}' }).batch
    expect(spoilt.part(message, facts)).toMatchObject({ code: "TEMPLATE_ERROR" })
  })

  it("Only an object that is too large is sent in parts, because a store does not look into objects", () => {
    const { batch } = batchOf()
    expect(batch.judge(answerOf(400, "EntityTooLarge"), 3)).toBeNull()
    expect(batch.judge(answerOf(413, ""), 3)).toBeNull()
    expect(batch.judge(answerOf(400, "EntityTooLarge"), 1)![0]!.verdict).toMatchObject({ final: true })
    const finals = (status: number, code: string) =>
      batch.judge(answerOf(status, code), 2)!.map(({ verdict }) => verdict !== "successful" && verdict.final)
    expect([finals(404, "NoSuchBucket"), finals(503, "SlowDown")]).toEqual([
      [true, true],
      [false, false]
    ])
  })

  it("Settings that would lose objects or have no effect are refused", () => {
    const { schema } = connectorOf("OBJECT_STORE_S")!.settings["batch"]!
    const faultOf = (batch: Config) =>
      Result.match(Schema.decodeUnknownResult(schema as never)(batch), {
        onFailure: ({ message }) => message,
        onSuccess: () => ""
      })
    expect(faultOf({ key_template: "{{year}}/{{ batch_id }}", compression: "gzip" })).toBe("")
    for (const [batch, fault] of [
      [{ key_template: "{{year}}/all.ndjson" }, /must have \{\{batch_id\}\}/],
      [{ key_template: "{{event_id}}/{{batch_id}}" }, /must be a template/],
      [{ key_template: "../{{batch_id}}" }, /must be a key that can be stored/],
      [{ key_template: `${"{{destination_id}}".repeat(16)}{{batch_id}}` }, /more than 1024 bytes/],
      [{ compression: "zip" }, /none.*gzip/],
      [{ max_count: 501 }, /from 2 to 500/]
    ] as const) {
      expect(faultOf(batch)).toMatch(fault)
    }
    expect(faults({ batch: {}, key_template: "a/{{event_id}}" })[0]).toMatch(/^config.key_template has no effect/)
    expect(faults({ batch: {}, content_type: "text/csv" })[0]).toMatch(/^config.content_type must be/)
    expect(faults({ batch: { max_count: 10 }, max_concurrency: 5 })).toHaveLength(1)
    expect(opened("OBJECT_STORE_S", base).batch).toBeUndefined()
  })
})
