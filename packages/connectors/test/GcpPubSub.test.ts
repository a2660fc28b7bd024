import { describe, expect, it } from "@effect/vitest"
import { gzipSync } from "node:zlib"
import { connectorOf } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Message } from "@tidegate/model/Message"
import { factsOf } from "./Facts.ts"
import { bearer, event, faultsOf, opened, refusalOf, sent } from "./Opened.ts"

const base = { project_id: "my-shop", topic: "orders" }
const pubSub = (config: Config = {}) => opened("GCP_PUBSUB", { ...base, ...config })

interface PubSubMessage {
  readonly data: string
  readonly attributes: Readonly<Record<string, string>>
  readonly orderingKey?: string
}

const publishedOf = (config: Config, message: Message): PubSubMessage => {
  const { messages } = JSON.parse(sent(pubSub(config), message).text) as { readonly messages: [PubSubMessage] }
  expect(messages).toHaveLength(1)
  return messages[0]
}

/** A call of `publish` that @google-cloud/pubsub 5.3.1 has made (v1.PublisherClient, by HTTP). */
const recorded = {
  method: "POST",
  path: "/v1/projects/my-shop/topics/orders%25v1:publish",
  contentType: "application/json",
  body: '{"messages":[{"attributes":{"message_id":"evt_1","content_type":"application/json"},"data":"eyJpZCI6N30=","orderingKey":"c7"}]}'
}

describe("GCP_PUBSUB destination", () => {
  it("GCP_PUBSUB destination makes the call that Google's own client makes", () => {
    const config = { topic: "orders%v1", ordering_key: "c{{payload.id}}" }
    const { headers, method, text, url } = sent(pubSub(config), event({ id: 7 }))
    expect([method, url]).toEqual([recorded.method, `https://stand-in-of-pubsub.googleapis.com${recorded.path}`])
    expect(headers).toMatchObject(bearer.headers)
    expect(headers["content-type"]).toContain(recorded.contentType)
    expect(JSON.parse(text)).toMatchObject(JSON.parse(recorded.body) as object)
  })

  it("GCP_PUBSUB message has the body byte for byte and the ids of its event as attributes", () => {
    const body = gzipSync(Buffer.from([0, 0xff, 1]))
    const headers = { "content-type": "application/octet-stream", "content-encoding": "gzip" }
    const { attributes, data, orderingKey } = publishedOf({}, event("", { body, headers }))
    expect(Buffer.from(data, "base64")).toEqual(body)
    expect(orderingKey).toBeUndefined()
    expect(attributes).toEqual({
      message_id: "evt_1",
      event_id: "evt_1",
      request_id: "req_1",
      source_id: "src_1",
      connection_id: "con_1",
      destination_id: "des_1",
      attempt_number: "1",
      created_at: "2026-01-02T00:00:00.000Z",
      content_type: "application/octet-stream",
      content_encoding: "gzip"
    })
    const long = publishedOf({}, event("", { headers: { "content-type": "a".repeat(1_025) } }))
    expect([long.data, long.attributes]).toEqual(["", expect.not.objectContaining({ content_type: expect.anything() })])
  })

  it("GCP_PUBSUB message carries the loop mark as an attribute, unless others have made it longer than one may be", () => {
    const sender = pubSub()
    const attributesWith = (loop: string) => {
      const request = sender.prepare(event({}), factsOf(event({}), { loop }))
      if (!("body" in request)) throw new Error(request.message)
      return (JSON.parse(Buffer.from(request.body).toString()) as { messages: [PubSubMessage] }).messages[0].attributes
    }
    expect(sender.marksMessages).toBe(true)
    expect(attributesWith("a mark")).toMatchObject({ message_id: "evt_1", "gateway-loop": "a mark" })
    expect(attributesWith("m".repeat(1_025))).not.toHaveProperty("gateway-loop")
  })

  it("GCP_PUBSUB message has the ordering key of its template, or else of its connection", () => {
    const keyOf = (config: Config, payload: unknown) => publishedOf(config, event(payload)).orderingKey
    const template = { ordering_key: "{{payload.customer}}" }
    expect(keyOf(template, { customer: 'c"7' })).toBe('c"7')
    expect(keyOf(template, {})).toBeUndefined()
    const ordered = pubSub(template).prepare(event({}), factsOf(event({}), { orderingKey: "k1" }))
    expect("body" in ordered && Buffer.from(ordered.body).toString()).toContain('"orderingKey":"k1"')
    const refusal = refusalOf(pubSub(template), event({ customer: "ж".repeat(513) }))
    expect([refusal.code, refusal.message]).toEqual([
      "TEMPLATE_ERROR",
      "config.ordering_key makes more than 1024 bytes of this event"
    ])
  })

  it("GCP_PUBSUB destination refuses a message that is larger than the service takes before it is sent", () => {
    expect(refusalOf(pubSub(), event("", { body: Buffer.alloc(10_000_001) })).code).toBe("REQUEST_TOO_LARGE")
  })

  it("GCP_PUBSUB destination calls its endpoint, and a change of it needs new credentials", () => {
    const { url } = sent(pubSub({ endpoint: "http://localhost:8085" }), event({}))
    expect(url).toBe("http://localhost:8085/v1/projects/my-shop/topics/orders:publish")
    const leadsTo = (endpoint: string | null) => connectorOf("GCP_PUBSUB")!.leadsTo!({ ...base, endpoint })
    expect(leadsTo(null)).toBe("https://pubsub.googleapis.com")
    expect(leadsTo("https://europe-west1-pubsub.googleapis.com")).not.toBe(leadsTo(null))
    expect(faultsOf("GCP_PUBSUB", base)).toEqual([])
  })
})
