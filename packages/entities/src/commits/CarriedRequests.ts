import { Schema, SchemaTransformation } from "effect"
import type { RequestRecord } from "@tidegate/storage/Journal"
import { pack, unpack } from "../dispatch/Packed.ts"

/** Requests on their way to the process that commits them. They cross as one buffer: a JSON part and then the bodies. */
export class CarriedRequests {
  readonly records: ReadonlyArray<RequestRecord>
  constructor(records: ReadonlyArray<RequestRecord>) {
    this.records = records
  }
}

/** A record with the length of its body (bytes); null: it has none. */
type Head = Omit<RequestRecord, "body"> & { readonly body: number | null }

const headOf = (record: RequestRecord): Head => ({ ...record, body: record.body?.length ?? null })

const encode = ({ records }: CarriedRequests): Uint8Array =>
  pack(
    JSON.stringify(records.map(headOf)),
    records.flatMap(({ body }) => body ?? [])
  )

const decode = (bytes: Uint8Array): CarriedRequests => {
  const { json, next } = unpack(bytes)
  return new CarriedRequests(
    (json as ReadonlyArray<Head>).map((head): RequestRecord =>
      Object.assign(head, { body: head.body === null ? null : next(head.body) })
    )
  )
}

export const RequestsSchema = Schema.instanceOf(CarriedRequests).pipe(
  Schema.encodeTo(
    Schema.Uint8Array,
    SchemaTransformation.transform({ decode: (bytes: Uint8Array) => decode(bytes), encode })
  )
)
