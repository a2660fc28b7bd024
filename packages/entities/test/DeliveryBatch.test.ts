import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { Batch, DeliveryBatch } from "../src/Destination/DeliveryBatch.ts"
import { type DeliveryItem, type DeliveryPayload, newItem } from "../src/Destination/DeliveryItem.ts"

const payload = (requestId: string, body: Uint8Array, headers = {}): DeliveryPayload => ({
  requestId,
  method: "POST",
  path: "/ünï",
  query: "",
  headers,
  body,
  verified: true,
  originalIp: null,
  presented: null
})

const item = (id: string, of: DeliveryPayload): DeliveryItem =>
  newItem({ id, connectionId: "web_1", dueAt: 2, orderingKey: null }, { teamId: "tm_1", sourceId: "src_1" }, 1, of)

const mebibyte = 1024 * 1024
const encode = Schema.encodeSync(DeliveryBatch)
const decode = Schema.decodeSync(DeliveryBatch)
/** How many bytes cross, and what arrives. */
const sent = (items: ReadonlyArray<DeliveryItem>) => {
  const bytes = encode(new Batch(items))
  return { bytes: bytes.length, batch: decode(bytes) }
}

describe("a batch on its way to another process", () => {
  it("arrives as it was, each payload once", () => {
    const shared = payload("req_1", Buffer.from([0, 255, 10]), { "x-a": ["1", "2"] })
    const items = [item("evt_1", shared), item("evt_2", payload("req_2", Buffer.from("ü"))), item("evt_3", shared)]
    const { batch } = sent(items)
    expect(batch.more).toBe(false)
    expect(batch.items).toStrictEqual(items)
    expect(batch.items[0]!.payload).toBe(batch.items[2]!.payload)
    expect(decode(encode(new Batch(items, true))).more).toBe(true)
  })

  it("leaves behind a body that is too large, and says so", () => {
    const small = item("evt_2", payload("req_2", Buffer.alloc(64 * 1024)))
    const { batch } = sent([item("evt_1", payload("req_1", Buffer.alloc(64 * 1024 + 1))), small])
    expect(batch.more).toBe(true)
    expect(batch.items).toStrictEqual([small])
  })

  it("is of bounded size whatever it is of: bodies, headers, events of one request", () => {
    const shared = payload("req_1", Buffer.alloc(1))
    const many = {
      bodies: Array.from({ length: 500 }, (_, i) => item(`evt_${i}`, payload(`req_${i}`, Buffer.alloc(64 * 1024, i)))),
      headers: Array.from({ length: 100 }, (_, i) =>
        item(`evt_${i}`, payload(`req_${i}`, Buffer.alloc(1), { x: "ü".repeat(mebibyte / 4) }))
      ),
      events: Array.from({ length: 100_000 }, (_, i) => item(`evt_${i}`, shared))
    }
    for (const items of Object.values(many)) {
      const { batch, bytes } = sent(items)
      expect(batch.more).toBe(true)
      expect(bytes).toBeGreaterThan(7 * mebibyte)
      expect(bytes).toBeLessThan(9 * mebibyte)
      // The first ones, in their order.
      expect(batch.items.map(({ eventId }) => eventId)).toStrictEqual(
        items.slice(0, batch.items.length).map(({ eventId }) => eventId)
      )
    }
  })
})
