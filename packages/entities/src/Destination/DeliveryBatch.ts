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

/** What crosses the network at once, far below the largest frame: the destination reads the rest from SQL. */
const largestCarried = 8 * 1024 * 1024

const encode = (batch: Batch): Uint8Array => {
  const payloads: Array<string> = []
  const bodies: Array<Uint8Array> = []
  const items: Array<string> = []
  /** Where each payload is; null: left out. */
  const positions = new Map<DeliveryPayload, number | null>()
  let carried = 0
  /** Whether so much more still fits; what does is taken. */
  const take = (bytes: number): boolean => {
    if (carried + bytes > largestCarried) return false
    carried += bytes
    return true
  }
  for (const { payload, ...item } of batch.items) {
    if (!positions.has(payload)) {
      const { body, ...rest } = payload
      const head = JSON.stringify(Object.assign(rest, { body: body.length }))
      const fits = body.length <= largestCarriedBody && take(Buffer.byteLength(head) + body.length)
      positions.set(payload, fits ? payloads.length : null)
      if (fits) {
        payloads.push(head)
        bodies.push(body)
      }
    }
    const position = positions.get(payload)
    if (position === null) continue
    const text = JSON.stringify(Object.assign(item, { payload: position }))
    if (!take(Buffer.byteLength(text))) break
    items.push(text)
  }
  const more = batch.more || items.length < batch.items.length
  const head = Buffer.from(`{"more":${more},"payloads":[${payloads.join()}],"items":[${items.join()}]}`)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(head.length)
  return Buffer.concat([length, head, ...bodies])
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
