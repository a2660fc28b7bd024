import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { gzipSync } from "node:zlib"
import { type AttemptFacts, type OpenAuth, Refusal } from "@tidegate/connectors/Connector"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { bearer, event, faultsOf, opened, refusalOf, sent } from "./Opened.ts"

const base = { endpoint: "https://my-shop.servicebus.windows.net", entity: "shop/orders" }
const auth: OpenAuth = {
  headers: {},
  signing: null,
  settings: { key_name: "gateway send", key: "ZmFrZSBrZXkgb2YgYSB0ZXN0IG5vdCBhIHNlY3JldA==" }
}
const serviceBus = (config: Config = {}, by = auth) => opened("AZURE_SERVICE_BUS", { ...base, ...config }, by)

/** The token of an hour that the client of Azure (@azure/core-amqp 4.5.1, createSasTokenProvider) has made of this policy at 2026-01-01T00:00:00Z. */
const recorded =
  "SharedAccessSignature sr=https%3A%2F%2Fmy-shop.servicebus.windows.net%2Fshop%2Forders&sig=tUyuqB9g40rcZizFoF8P0DigA%2BZzw0h%2FQ1ETgN0YCDo%3D&se=1767229200&skn=gateway%20send"
/** A quarter of an hour before that token ends. */
const timestampSeconds = 1_767_229_200 - 900

const brokerPropertiesOf = (config: Config, message: Message, facts: Partial<AttemptFacts> = {}): unknown => {
  const request = serviceBus(config).prepare(message, factsOf(message, facts))
  if (!("body" in request)) throw new Error(request.message)
  return JSON.parse(request.headers[request.headers.indexOf("BrokerProperties") + 1]!)
}

describe("AZURE_SERVICE_BUS destination", () => {
  it("AZURE_SERVICE_BUS destination signs the token that Azure's own client signs", async () => {
    const sender = serviceBus()
    const message = event({ id: 7 })
    const facts = factsOf(message, { timestampSeconds })
    const request = sender.prepare(message, facts)
    if (!("body" in request)) throw new Error(request.message)
    expect(request.headers).not.toContain("authorization")
    const { headers, secret, url } = await sender.complete!(request, facts)
    expect([url, secret]).toEqual([`${base.endpoint}/shop/orders/messages`, recorded])
    expect(headers.slice(-2)).toEqual(["authorization", recorded])
  })

  it("AZURE_SERVICE_BUS destination sends the bearer token of its client instead, where it has one", () => {
    const sender = serviceBus({}, bearer)
    expect(sender.complete).toBeUndefined()
    expect(sent(sender, event({})).headers).toMatchObject(bearer.headers)
  })

  it("AZURE_SERVICE_BUS message has the body byte for byte, its media type, and the ids of its event as properties", () => {
    const body = gzipSync(Buffer.from([0, 0xff, 1]))
    const headers = { "content-type": "application/octet-stream", "content-encoding": "gzip" }
    const request = sent(serviceBus(), event("", { body, headers }))
    expect(Buffer.from(request.body)).toEqual(body)
    expect(request.headers).toEqual({
      "user-agent": "event-gateway/1",
      "content-type": "application/octet-stream",
      BrokerProperties: '{"MessageId":"evt_1"}',
      event_id: '"evt_1"',
      request_id: '"req_1"',
      source_id: '"src_1"',
      connection_id: '"con_1"',
      destination_id: '"des_1"',
      attempt_number: '"1"',
      created_at: '"2026-01-02T00:00:00.000Z"',
      content_encoding: '"gzip"'
    })
    const strange = event("", { headers: { "content-type": "text/ü" } })
    expect(sent(serviceBus(), strange).headers["content-type"]).toBe("application/octet-stream")
  })

  it("AZURE_SERVICE_BUS message has session and subject by template, and else the ordering key of its connection", () => {
    const templates = { session_id: "{{payload.customer}}", subject: "Order\r\n{{payload.id}}" }
    const message = event({ customer: "ü😀", id: 7 })
    expect(brokerPropertiesOf(templates, message)).toEqual({
      MessageId: "evt_1",
      SessionId: "ü😀",
      Label: "Order\r\n7"
    })
    // Header values are ASCII without line breaks: everything else is escaped.
    expect(sent(serviceBus(templates), message).headers["BrokerProperties"]).toMatch(/^[\x20-\x7e]+$/)
    const ordered = { orderingKey: "k1" }
    expect(brokerPropertiesOf(templates, event({ id: 7 }), ordered)).toMatchObject({ SessionId: "k1" })
    expect(brokerPropertiesOf({}, event({}), ordered)).toEqual({ MessageId: "evt_1", SessionId: "k1" })
    expect(refusalOf(serviceBus(templates), event({ customer: "c".repeat(129) }))).toMatchObject({
      code: "TEMPLATE_ERROR",
      message: "config.session_id makes more than 128 characters of this event"
    })
  })

  it("AZURE_SERVICE_BUS destination refuses a message that is larger than the service takes before it is sent", () => {
    const large = event("", { body: Buffer.alloc(1024 * 1024 + 1) })
    expect(refusalOf(serviceBus(), large).code).toBe("REQUEST_TOO_LARGE")
  })

  it.each(["/orders", "orders/", "a//b", "../b", "a/../b", "a b", "a?b", "a%2fb", "a".repeat(261)])(
    "AZURE_SERVICE_BUS destination refuses the name %s of a queue, which would lead elsewhere",
    (entity) => {
      const isEntity = Schema.is(connectorOf("AZURE_SERVICE_BUS")!.settings["entity"]!.schema)
      expect([isEntity(base.entity), isEntity(entity)]).toEqual([true, false])
    }
  )
})

describe("Batch of AZURE_SERVICE_BUS", () => {
  const config = { session_id: "{{payload.customer}}", subject: "Order {{payload.id}}", batch: {} }
  const { batch, complete } = serviceBus(config)
  const partOf = (message: Message, facts: Partial<AttemptFacts> = {}) =>
    batch!.part(message, factsOf(message, { createdAt: Date.UTC(2026, 0, 2), ...facts }))
  const partsOf = (...messages: ReadonlyArray<Message>) =>
    messages.map((message, i) => {
      const part = partOf(message, { webhookId: `evt_${i}`, eventId: `evt_${i}` })
      if (part === null || part instanceof Refusal) throw new Error("it is in no batch")
      return part
    })
  const answer = (status: number, detail = "") => ({
    status,
    headers: {},
    body: Buffer.from(`<Error><Code>${status}</Code><Detail>${detail}</Detail></Error>`),
    bodyTruncated: false
  })

  it("Call has the messages in their order, each with its body, its ids, its session and its subject", async () => {
    const text = '{"customer":"c1", "id":7,"text":"ü😀\\u0000"}'
    const parts = partsOf(event(text), event("\ufeffplain\u0000", { headers: { "content-type": "text/plain" } }))
    const request = batch!.call(parts, [])
    expect([request.method, request.url]).toEqual(["POST", `${base.endpoint}/shop/orders/messages`])
    expect(request.headers.slice(2)).toEqual(["content-type", "application/vnd.microsoft.servicebus.json"])
    const ids = {
      request_id: "req_1",
      source_id: "src_1",
      connection_id: "con_1",
      destination_id: "des_1",
      attempt_number: "1",
      created_at: "2026-01-02T00:00:00.000Z"
    }
    expect(JSON.parse(Buffer.from(request.body).toString())).toEqual([
      {
        Body: text,
        BrokerProperties: {
          MessageId: "evt_0",
          SessionId: "c1",
          Label: "Order 7",
          ContentType: "application/json"
        },
        UserProperties: { ...ids, event_id: "evt_0", content_type: "application/json" }
      },
      {
        Body: "\ufeffplain\u0000",
        BrokerProperties: { MessageId: "evt_1", Label: "Order", ContentType: "text/plain" },
        UserProperties: { ...ids, event_id: "evt_1", content_type: "text/plain" }
      }
    ])
    expect(request.body.byteLength).toBe(parts.reduce((sum, { bytes }) => sum + bytes, 1))
    const signed = await complete!(request, factsOf(event({}), { timestampSeconds }))
    expect(signed.headers.slice(-2)).toEqual(["authorization", recorded])
  })

  it("A body that is empty or no text has a call of its own, because a batch would change it", () => {
    expect(partOf(event("", { body: Buffer.from([0xff, 1]) }))).toBeNull()
    expect(partOf(event("", { body: gzipSync("{}"), headers: { "content-encoding": "gzip" } }))).toBeNull()
    expect(partOf(event(""))).toBeNull()
  })

  it("An event of which no message can be made is refused before it is in a call", () => {
    expect(partOf(event("", { body: Buffer.alloc(1024 * 1024 + 1, "x") }))).toMatchObject({ code: "REQUEST_TOO_LARGE" })
    expect(partOf(event({ customer: "c".repeat(129) }))).toMatchObject({ code: "TEMPLATE_ERROR" })
  })

  it("The service takes all messages or none, and each is sent alone if it refuses them for what is in them", () => {
    const all = (status: number, detail?: string) =>
      batch!
        .judge(answer(status, detail), 2)
        ?.map(({ verdict }) => (verdict === "successful" ? verdict : verdict.final))
    expect(all(201)).toEqual(["successful", "successful"])
    for (const [status, detail] of [
      [400, "40000: The property is not valid"],
      [403, "MessageSizeExceeded: The received message is too large"],
      [413, "41300: Too large"]
    ] as const) {
      expect(all(status, detail)).toBeUndefined()
      expect(batch!.judge(answer(status, detail), 1)).toMatchObject([{ verdict: { final: true } }])
    }
    for (const status of [401, 403, 404, 410, 429, 500, 503]) expect(all(status)).toEqual([false, false])
    // Something else has answered.
    expect(all(200)).toEqual([false, false])
  })

  it("Limits are those of the service, or lower ones", () => {
    expect(batch!.limits).toEqual({ maxCount: 100, maxBytes: 1024 * 1024, maxWaitMs: 50 })
    expect(serviceBus().batch).toBeUndefined()
    expect(faultsOf("AZURE_SERVICE_BUS", { ...base, batch: { max_count: 101, max_bytes: 2 * 1024 * 1024 } })).toEqual([
      "config.batch.max_count must be at most 100: the service takes no more in one call",
      "config.batch.max_bytes must be at most 1048576: the service takes no more in one call"
    ])
  })
})
