import type { KafkaRecord } from "@tidegate/connectors/Brokers"
import { crc32c, recordBatch } from "../src/KafkaRecords.ts"

/** A batch of records as a broker has it. */
export interface BatchOf {
  /** The offset of the first record. */
  readonly first: number
  readonly records: ReadonlyArray<KafkaRecord>
  /** Unix ms */
  readonly time?: number
  /** The number of the compression, and the compressed records. */
  readonly codec?: number
  readonly compress?: (records: Buffer) => Buffer
  /** Of a transaction of this producer. */
  readonly producer?: number
  /** It is the mark that ends a transaction. */
  readonly isMark?: boolean
  /** How far the last record is behind the first one, if some between them are gone. */
  readonly behind?: number
}

export const batchOf = ({
  behind,
  codec = 0,
  compress = (content) => content,
  first,
  isMark = false,
  producer,
  records,
  time = 1_700_000_000_000
}: BatchOf): Buffer => {
  const made = Buffer.concat(
    recordBatch({ producer: { id: BigInt(producer ?? -1), epoch: 0 }, sequence: 0, records, time })
  )
  const batch = Buffer.concat([made.subarray(0, 61), compress(made.subarray(61))])
  batch.writeBigInt64BE(BigInt(first), 0)
  batch.writeInt32BE(batch.length - 12, 8)
  batch.writeInt16BE(codec | (producer === undefined ? 0 : 16) | (isMark ? 32 : 0), 21)
  if (behind !== undefined) batch.writeInt32BE(behind, 23)
  batch.writeUInt32BE(crc32c([batch.subarray(21)]), 17)
  return batch
}

/** The mark that ends a transaction. */
export const markOf = (kind: "abort" | "commit", producer: number, first: number): Buffer =>
  batchOf({
    first,
    producer,
    isMark: true,
    records: [{ key: kind === "abort" ? "\0\0\0\0" : "\0\0\0\u0001", headers: {}, value: Buffer.alloc(0) }]
  })
