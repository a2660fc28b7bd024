import {
  bytes,
  int16,
  int32,
  type KafkaCall,
  type KafkaValues,
  listOfOne,
  nullText,
  sizeOf,
  text
} from "./KafkaFrames.ts"
import { breach } from "./ServerFrames.ts"
import { type KafkaBatch, type KafkaProducer, recordBatch } from "./KafkaRecords.ts"

/** The calls of a publisher, and those by which every client learns of the cluster. */

const usualLongest = 64 * 1024
/** Enough for a topic with thousands of partitions. */
const longestMetadata = 512 * 1024

/** How long (ms) a broker may wait for the other replicas to have the records. */
const replicasMs = 8_000

/** The versions that a broker speaks, by call. */
export type Versions = ReadonlyMap<number, readonly [lowest: number, highest: number]>

export const apiVersions: KafkaCall<{ readonly error: number; readonly versions: Versions }> = {
  key: 18,
  versions: [0, 0],
  body: [],
  longest: usualLongest,
  read: (values) => ({
    error: values.int16(),
    versions: new Map(values.list(() => [values.int16(), [values.int16(), values.int16()]] as const))
  })
}

/** Version 0 would be followed by bytes that are no calls. */
export const saslHandshake = (
  mechanism: string
): KafkaCall<{ readonly error: number; readonly mechanisms: ReadonlyArray<string> }> => ({
  key: 17,
  versions: [1, 1],
  body: [text(mechanism)],
  longest: usualLongest,
  read: (values) => ({ error: values.int16(), mechanisms: values.list(() => values.text()) })
})

export interface Authenticated {
  readonly error: number
  readonly said: string
  readonly bytes: Buffer
  /** After this time (ms) the broker ends the connection; 0: never. */
  readonly lifetimeMs: number
}

export const saslAuthenticate = (words: Buffer): KafkaCall<Authenticated> => ({
  key: 36,
  versions: [0, 1],
  body: [bytes(words)],
  longest: usualLongest,
  read: (values, version) => ({
    error: values.int16(),
    said: values.optionalText(),
    bytes: values.bytes(),
    lifetimeMs: version === 0 ? 0 : Number(values.int64())
  })
})

export interface Server {
  readonly host: string
  readonly port: number
}

export interface Metadata {
  /** Empty: the brokers do not say it. */
  readonly clusterId: string
  readonly brokers: ReadonlyMap<number, Server>
  /** Of the topic. */
  readonly error: number
  /** The number of the leader of each partition, by the partition's number; -1: it has none now. */
  readonly leaders: ReadonlyArray<number>
}

const leadersOf = (
  partitions: ReadonlyArray<{ readonly id: number; readonly leader: number }>
): ReadonlyArray<number> => {
  const leaders = Array.from<number>({ length: partitions.length }).fill(-2)
  for (const { id, leader } of partitions) {
    if (leaders[id] !== -2) throw breach("the broker does not number the partitions of the topic one by one")
    leaders[id] = leader
  }
  return leaders
}

/** Of one topic, which is not made by asking. */
export const metadataOf = (topic: string): KafkaCall<Metadata> => ({
  key: 3,
  versions: [4, 4],
  body: [listOfOne(text(topic)), Buffer.from([0])],
  longest: longestMetadata,
  read: (values) => {
    values.int32()
    const brokers = values.list(() => {
      const broker = [values.int32(), { host: values.text(), port: values.int32() }] as const
      values.optionalText()
      return broker
    })
    const clusterId = values.optionalText()
    values.int32()
    const topics = values.list(() => {
      const error = values.int16()
      const name = values.text()
      values.boolean()
      const partitions = values.list(() => partitionOf(values))
      return { error, name, partitions }
    })
    const [own, ...more] = topics
    if (own?.name !== topic || more.length > 0) throw breach("the broker tells of another topic than the one asked for")
    return { clusterId, brokers: new Map(brokers), error: own.error, leaders: leadersOf(own.partitions) }
  }
})

const partitionOf = (values: KafkaValues) => {
  values.int16()
  const partition = { id: values.int32(), leader: values.int32() }
  values.list(() => values.int32())
  values.list(() => values.int32())
  return partition
}

/** Makes the gateway known to the cluster, so that records that are sent again are recognised. */
export const initProducerId: KafkaCall<{ readonly error: number; readonly producer: KafkaProducer }> = {
  key: 22,
  versions: [0, 1],
  body: [nullText, int32(replicasMs)],
  longest: usualLongest,
  read: (values) => {
    values.int32()
    return { error: values.int16(), producer: { id: values.int64(), epoch: values.int16() } }
  }
}

export interface Produced {
  readonly error: number
  /** The offset of the first record; -1: the broker does not know it any more. */
  readonly offset: bigint
  readonly said: string
}

/** Answered when all replicas that are in sync have the records. */
const allReplicas = -1

export const produce = (topic: string, partition: number, batch: KafkaBatch): KafkaCall<Produced> => {
  const records = recordBatch(batch)
  return {
    key: 0,
    versions: [3, 8],
    body: [
      nullText,
      int16(allReplicas),
      int32(replicasMs),
      int32(1),
      text(topic),
      int32(1),
      int32(partition),
      int32(sizeOf(records)),
      ...records
    ],
    longest: usualLongest,
    read: (values, version) => {
      const answers = values.list(() => ({
        topic: values.text(),
        partitions: values.list(() => producedOf(values, version))
      }))
      const [answer] = answers
      const own = answer?.partitions[0]
      if (answer?.topic !== topic || own?.partition !== partition) {
        throw breach("the broker answers for another partition than the one written to")
      }
      return own
    }
  }
}

const producedOf = (values: KafkaValues, version: number): Produced & { readonly partition: number } => {
  const [partition, error, offset] = [values.int32(), values.int16(), values.int64()]
  values.int64()
  if (version >= 5) values.int64()
  if (version < 8) return { partition, error, offset, said: "" }
  const faults = values.list(() => {
    values.int32()
    return values.optionalText()
  })
  return { partition, error, offset, said: values.optionalText() || (faults[0] ?? "") }
}
