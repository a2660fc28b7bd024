import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { gzipSync } from "node:zlib"
import type { AttemptFacts, OpenAuth } from "@tidegate/connectors/Connector"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { bearer, event, opened, refusalOf, sent } from "./Opened.ts"

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
