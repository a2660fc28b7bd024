import { Schema, SchemaTransformation } from "effect"
import type { DeliveryItem, DeliveryPayload } from "./DeliveryItem.ts"

/**
 * Events just committed, on their way to their destination's actor. On the same runner it is handed over as it is. Across
 * the network it is one buffer: a JSON part and the bodies behind it, each payload once.
 */
export class Batch {
  readonly items: ReadonlyArray<DeliveryItem>
  /** There are more that did not travel: the destination finds them in SQL. */
  readonly more: boolean
  constructor(items: ReadonlyArray<DeliveryItem>, more = false) {
    this.items = items
    this.more = more
  }
}

/** A payload whose body is larger does not cross the network: the destination reads it from SQL. */
const largestCarriedBody = 64 * 1024

const encode = (batch: Batch): Uint8Array => {
  const payloads = [...new Set(batch.items.map((item) => item.payload))].filter(
    (payload) => payload.body.length <= largestCarriedBody
  )
  const positions = new Map(payloads.map((payload, index) => [payload, index]))
  const items = batch.items.filter((item) => positions.has(item.payload))
  const head = Buffer.from(
    JSON.stringify({
      more: batch.more || items.length < batch.items.length,
      payloads: payloads.map(({ body, ...payload }) => Object.assign(payload, { body: body.length })),
      items: items.map(({ payload, ...item }) => Object.assign(item, { payload: positions.get(payload) }))
    })
  )
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, ...payloads.map((payload) => payload.body)])
}

interface Head {
  readonly more: boolean
  readonly payloads: ReadonlyArray<Omit<DeliveryPayload, "body"> & { readonly body: number }>
  readonly items: ReadonlyArray<Omit<DeliveryItem, "payload"> & { readonly payload: number }>
}

const decode = (bytes: Uint8Array): Batch => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const start = 4 + buffer.readUInt32BE(0)
  const head = JSON.parse(buffer.toString("utf8", 4, start)) as Head
  let at = start
  const payloads = head.payloads.map((payload): DeliveryPayload => {
    const body = buffer.subarray(at, at + payload.body)
    at += payload.body
    return Object.assign(payload, { body })
  })
  return new Batch(
    head.items.map((item): DeliveryItem => Object.assign(item, { payload: payloads[item.payload]! })),
    head.more
  )
}

export const DeliveryBatch = Schema.instanceOf(Batch).pipe(
  Schema.encodeTo(
    Schema.Uint8Array,
    SchemaTransformation.transform({ decode: (bytes: Uint8Array) => decode(bytes), encode })
  )
)
