import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { Batch, batchOf } from "../src/dispatch/Batch.ts"
import { type DeliveryItem, type DeliveryPayload, newItem } from "../src/Destination/queue/DeliveryItem.ts"
import { CarriedHandover, Handover } from "../src/dispatch/Handover.ts"

const payload = (requestId: string, body: Uint8Array, headers = {}): DeliveryPayload => ({
  requestId,
  dataId: null,
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

const kibibyte = 1024
const mebibyte = 1024 * kibibyte
const encode = Schema.encodeSync(CarriedHandover)
const decode = Schema.decodeSync(CarriedHandover)
/** How many bytes cross, and what arrives. */
const sent = (batches: Record<string, Batch<DeliveryItem>>) => {
  const bytes = encode(new Handover(new Map(Object.entries(batches))))
  return { bytes: bytes.length, batches: decode(bytes).batches }
}

describe("Handover between processes", () => {
  it("A handover arrives unchanged", () => {
    const items = [
      item("evt_1", payload("req_1", Buffer.from([0, 255, 10]), { "x-a": ["1", "2"] })),
      item("evt_2", payload("req_2", Buffer.from("ü")))
    ]
    const { batches } = sent({ 'des_"1': new Batch(items), des_2: new Batch([], true), des_3: new Batch([items[1]!]) })
    expect([...batches.keys()]).toStrictEqual(['des_"1', "des_2", "des_3"])
    expect(batches.get('des_"1')).toStrictEqual(new Batch(items))
    expect(batches.get("des_2")).toStrictEqual(new Batch([], true))
    expect(batches.get("des_3")).toStrictEqual(new Batch([items[1]!]))
  })

  it("A handover carries a payload once, for any number of destinations and events", () => {
    const shared = payload("req_1", Buffer.alloc(32 * kibibyte, 7))
    const { batches, bytes } = sent(
      Object.fromEntries(
        Array.from({ length: 20 }, (_, index) => [
          `des_${index}`,
          new Batch([item(`evt_${index}a`, shared), item(`evt_${index}b`, shared)])
        ])
      )
    )
    expect(bytes).toBeLessThan(48 * kibibyte)
    const arrived = [...batches.values()].flatMap(({ items }) => items)
    expect(arrived).toHaveLength(40)
    expect(new Set(arrived.map(({ payload }) => payload)).size).toBe(1)
    // And keeps no more of the message in memory than its own.
    expect(arrived[0]!.payload.body.buffer.byteLength).toBe(32 * kibibyte)
  })

  it("A handover omits a body that is too large, and its destinations are told to read it", () => {
    const small = item("evt_2", payload("req_2", Buffer.alloc(64 * kibibyte)))
    const large = item("evt_1", payload("req_1", Buffer.alloc(64 * kibibyte + 1)))
    const { batches } = sent({ des_1: new Batch([large, small]), des_2: new Batch([small]), des_3: new Batch([large]) })
    expect(batches.get("des_1")).toStrictEqual(new Batch([small], true))
    expect(batches.get("des_2")).toStrictEqual(new Batch([small]))
    expect(batches.get("des_3")).toStrictEqual(new Batch([], true))
  })

  it("A handover has a maximum size, whatever it consists of", () => {
    const shared = payload("req_1", Buffer.alloc(1))
    const ofOne = (items: ReadonlyArray<DeliveryItem>) => ({ des_1: new Batch(items) })
    const many = {
      bodies: ofOne(
        Array.from({ length: 500 }, (_, i) => item(`evt_${i}`, payload(`req_${i}`, Buffer.alloc(64 * kibibyte, i))))
      ),
      headers: ofOne(
        Array.from({ length: 100 }, (_, i) =>
          item(`evt_${i}`, payload(`req_${i}`, Buffer.alloc(1), { x: "ü".repeat(mebibyte / 4) }))
        )
      ),
      events: ofOne(Array.from({ length: 100_000 }, (_, i) => item(`evt_${i}`, shared))),
      destinations: Object.fromEntries(
        Array.from({ length: 60_000 }, (_, i) => [`des_${i}`, new Batch([item(`evt_${i}`, shared)])])
      )
    }
    for (const given of Object.values<Record<string, Batch<DeliveryItem>>>(many)) {
      const { batches, bytes } = sent(given)
      expect(bytes).toBeGreaterThan(7 * mebibyte)
      expect(bytes).toBeLessThan(9 * mebibyte)
      const ids = Object.keys(given)
      // The first ones, in their order, and none of which it is not said that there are more.
      expect([...batches.keys()]).toStrictEqual(ids.slice(0, batches.size))
      for (const [id, { items, more }] of batches) {
        const { items: all } = given[id]!
        expect(more).toBe(items.length < all.length)
        expect(items.every(({ eventId }, index) => eventId === all[index]!.eventId)).toBe(true)
      }
    }
  })

  it("A batch for an actor that has moved only tells it to read SQL", () => {
    const carried = batchOf<DeliveryItem>()
    const cross = (batch: Batch<DeliveryItem>) => Schema.decodeSync(carried)(Schema.encodeSync(carried)(batch))
    expect(cross(new Batch([item("evt_1", payload("req_1", Buffer.alloc(1)))]))).toStrictEqual(new Batch([], true))
    expect(cross(new Batch([], true))).toStrictEqual(new Batch([], true))
    expect(cross(new Batch([]))).toStrictEqual(new Batch([]))
  })
})
