import { int32, int64, type KafkaCall, type KafkaValues, listOf, listOfOne, text } from "./KafkaFrames.ts"
import { type Offsets, partitionsOf } from "./KafkaGroupCalls.ts"
import { breach } from "./ServerFrames.ts"

/** The calls by which a leader of partitions gives their records. */

const nobody = int32(-1)
/** Records of transactions are given when the transaction is over. */
const readCommitted = Buffer.from([1])
/** Bytes of an answer to a fetch beside the records, for each partition and in all. */
const besidePartition = 128
const besideAll = 256 * 1024
const maxAborted = 10_000

/** Where a partition begins and ends for a reader. */
export type Edge = "earliest" | "latest"
const edges: Readonly<Record<Edge, bigint>> = { earliest: -2n, latest: -1n }

export interface Listed {
  readonly partition: number
  readonly error: number
  readonly offset: bigint
}

export const listOffsets = (
  topic: string,
  partitions: ReadonlyArray<number>,
  edge: Edge
): KafkaCall<ReadonlyArray<Listed>> => ({
  key: 2,
  versions: [2, 3],
  body: [
    nobody,
    readCommitted,
    listOfOne(
      Buffer.concat([
        text(topic),
        listOf(partitions.map((number) => Buffer.concat([int32(number), int64(edges[edge])])))
      ])
    )
  ],
  longest: besideAll + partitions.length * besidePartition,
  read: (values) => {
    values.int32()
    return partitionsOf(values, topic, () => {
      const [partition, error] = [values.int32(), values.int16()]
      values.int64()
      return { partition, error, offset: values.int64() }
    })
  }
})

/** A transaction that was taken back: its records from this offset on, up to the mark that ends it. */
export interface Aborted {
  readonly producer: bigint
  readonly from: bigint
}

export interface FetchedPartition {
  readonly partition: number
  readonly error: number
  readonly aborted: ReadonlyArray<Aborted>
  /** Batches of records. The last one may be cut off. */
  readonly records: Buffer
}

export interface Fetched {
  readonly error: number
  readonly partitions: ReadonlyArray<FetchedPartition>
}

export interface Fetching {
  readonly topic: string
  readonly offsets: Offsets
  /** How long (ms) the broker waits until there are records. */
  readonly waitMs: number
  /** Bytes of records that the broker gives. One batch may be longer. */
  readonly bytes: number
  /** Bytes of records that are read; a longer answer ends the connection with `RESPONSE_TOO_LARGE`. */
  readonly longest: number
}

export const fetchRecords = ({ bytes, longest, offsets, topic, waitMs }: Fetching): KafkaCall<Fetched> => {
  const parts = (version: number): Buffer =>
    Buffer.concat([
      nobody,
      int32(waitMs),
      int32(1),
      int32(bytes),
      readCommitted,
      // No session: each fetch says all.
      ...(version >= 7 ? [int32(0), int32(-1)] : []),
      listOfOne(
        Buffer.concat([
          text(topic),
          listOf(
            Array.from(offsets, ([number, offset]) =>
              Buffer.concat([
                int32(number),
                ...(version >= 9 ? [int32(-1)] : []),
                int64(offset),
                ...(version >= 5 ? [int64(-1n)] : []),
                int32(bytes)
              ])
            )
          )
        ])
      ),
      ...(version >= 7 ? [listOf([])] : [])
    ])
  return {
    key: 1,
    // A topic that is compressed by zstd is read from version 10 on.
    versions: [4, 10],
    body: (version) => [parts(version)],
    longest: longest + besideAll + offsets.size * besidePartition,
    patience: waitMs + 15_000,
    read: (values, version) => {
      values.int32()
      const error = version >= 7 ? values.int16() : 0
      if (version >= 7) values.int32()
      if (error !== 0) return { error, partitions: [] }
      const [own, ...more] = values.list(
        () => ({
          name: values.text(),
          partitions: values.list(() => fetchedOf(values, version), offsets.size)
        }),
        1
      )
      if ((own !== undefined && own.name !== topic) || more.length > 0) {
        throw breach("the broker gives records of another topic than the one asked for")
      }
      const partitions = own?.partitions ?? []
      const known = new Set(partitions.map(({ partition }) => partition))
      if (known.size < partitions.length || ![...known].every((number) => offsets.has(number))) {
        throw breach("the broker gives records of other partitions than those asked for")
      }
      return { error, partitions }
    }
  }
}

const fetchedOf = (values: KafkaValues, version: number): FetchedPartition => {
  const [partition, error] = [values.int32(), values.int16()]
  values.int64()
  values.int64()
  if (version >= 5) values.int64()
  const aborted = values.list(() => ({ producer: values.int64(), from: values.int64() }), maxAborted)
  return { partition, error, aborted, records: values.optionalBytes() }
}
