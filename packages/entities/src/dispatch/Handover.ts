import { Schema, SchemaTransformation } from "effect"
import { Batch } from "./Batch.ts"
import type { DeliveryItem, DeliveryPayload } from "../Destination/queue/DeliveryItem.ts"
import { pack, unpack } from "./Packed.ts"

/**
 * Events that were just committed, on their way to the runner of their destinations: a batch for each destination, by its id. A
 * handover crosses the network as one buffer: a JSON part and then the bodies. Each payload is in it once, however many
 * destinations it goes to.
 */
export class Handover {
  readonly batches: ReadonlyMap<string, Batch<DeliveryItem>>
  constructor(batches: ReadonlyMap<string, Batch<DeliveryItem>>) {
    this.batches = batches
  }
}

/** A payload with a larger body (bytes) does not cross the network: the destination reads it from SQL. */
const largestCarriedBody = 64 * 1024

/** Bytes of one message, far below the largest frame: the destinations read the rest from SQL. */
const largestCarried = 8 * 1024 * 1024

/** The JSON of a destination, up to its events. */
const batchHead = (id: string, more: boolean): string => `{"id":${JSON.stringify(id)},"more":${more},"items":[`

const encode = ({ batches }: Handover): Uint8Array => {
  const payloads: Array<string> = []
  const bodies: Array<Uint8Array> = []
  /** Where each payload is; null: left out. */
  const positions = new Map<DeliveryPayload, number | null>()
  let carried = 0
  /** Reserves that many bytes; false when they do not fit. */
  const take = (bytes: number): boolean => {
    if (carried + bytes > largestCarried) return false
    carried += bytes
    return true
  }
  const positionOf = (payload: DeliveryPayload): number | null => {
    let position = positions.get(payload)
    if (position === undefined) {
      const { body, ...rest } = payload
      const head = JSON.stringify(Object.assign(rest, { body: body.length }))
      const fits = body.length <= largestCarriedBody && take(Buffer.byteLength(head) + body.length)
      position = fits ? payloads.length : null
      positions.set(payload, position)
      if (fits) {
        payloads.push(head)
        bodies.push(body)
      }
    }
    return position
  }

  const carriedBatches: Array<string> = []
  for (const [id, batch] of batches) {
    // The destination is left out altogether: the poller finds its events.
    if (!take(Buffer.byteLength(batchHead(id, false)))) break
    const items: Array<string> = []
    for (const { payload, ...item } of batch.items) {
      const position = positionOf(payload)
      if (position === null) continue
      const text = JSON.stringify(Object.assign(item, { payload: position }))
      if (!take(Buffer.byteLength(text))) break
      items.push(text)
    }
    carriedBatches.push(`${batchHead(id, batch.more || items.length < batch.items.length)}${items.join()}]}`)
  }
  return pack(`{"payloads":[${payloads.join()}],"batches":[${carriedBatches.join()}]}`, bodies)
}

interface Head {
  readonly payloads: ReadonlyArray<Omit<DeliveryPayload, "body"> & { readonly body: number }>
  readonly batches: ReadonlyArray<{
    readonly id: string
    readonly more: boolean
    readonly items: ReadonlyArray<Omit<DeliveryItem, "payload"> & { readonly payload: number }>
  }>
}

const decode = (bytes: Uint8Array): Handover => {
  const { json, next } = unpack(bytes)
  const head = json as Head
  const payloads = head.payloads.map((payload): DeliveryPayload => Object.assign(payload, { body: next(payload.body) }))
  const itemOf = (item: Head["batches"][number]["items"][number]): DeliveryItem =>
    Object.assign(item, { payload: payloads[item.payload]! })
  return new Handover(new Map(head.batches.map(({ id, items, more }) => [id, new Batch(items.map(itemOf), more)])))
}

export const CarriedHandover = Schema.instanceOf(Handover).pipe(
  Schema.encodeTo(
    Schema.Uint8Array,
    SchemaTransformation.transform({ decode: (bytes: Uint8Array) => decode(bytes), encode })
  )
)
