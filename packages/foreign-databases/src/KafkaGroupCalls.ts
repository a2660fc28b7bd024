import type { Server } from "./KafkaCalls.ts"
import { bytes, int32, int64, type KafkaCall, KafkaValues, listOf, listOfOne, nullText, text } from "./KafkaFrames.ts"
import { breach } from "./ServerFrames.ts"

/** The calls of a member of a consumer group. */

const usualLongest = 64 * 1024
/** Enough for what a thousand members say of themselves, and for a topic with thousands of partitions. */
const longestOfMany = 1024 * 1024
/** Members of a group, the topics that they read, and the partitions of a topic. */
const maxMembers = 1_000
export const maxTopics = 200
const maxPartitions = 10_000

/** How long (ms) a member may be silent before the group goes on without it. */
const sessionMs = 10_000
/** How long (ms) the members of a group have to join again. */
const rebalanceMs = 60_000
/** How long (ms) a join may take: as long as the slowest member of the group has, which is 5 minutes by the habit of Kafka's own. */
const joinPatience = 330_000

/** Who a member is in its group, since the group was last formed. */
export interface Membership {
  readonly group: string
  readonly memberId: string
  readonly generation: number
}

const membership = ({ generation, group, memberId }: Membership): ReadonlyArray<Buffer> => [
  text(group),
  int32(generation),
  text(memberId)
]

/** The broker that knows the group. */
export const findCoordinator = (
  group: string
): KafkaCall<{ readonly error: number; readonly said: string; readonly server: Server }> => ({
  key: 10,
  versions: [1, 2],
  body: [text(group), Buffer.from([0])],
  longest: usualLongest,
  read: (values) => {
    values.int32()
    const [error, said] = [values.int16(), values.optionalText()]
    values.int32()
    return { error, said, server: { host: values.text(), port: values.int32() } }
  }
})

/** A member, and the topics that it wants to read. */
export interface Member {
  readonly id: string
  readonly topics: ReadonlyArray<string>
}

export interface Joined {
  readonly error: number
  readonly generation: number
  /** By what partitions are assigned: the name of one of the assignors. */
  readonly assignor: string
  readonly leader: string
  readonly memberId: string
  /** All members; nobody but the leader is told. */
  readonly members: ReadonlyArray<Member>
}

/** What a member says of itself, as Kafka's own consumers write it in version 0. Later versions say more behind it. */
const subscriptionOf = (topic: string): Buffer =>
  Buffer.concat([Buffer.from([0, 0]), listOfOne(text(topic)), int32(-1)])

const topicsIn = (subscription: Buffer): ReadonlyArray<string> => {
  const values = new KafkaValues(subscription)
  values.int16()
  return values.list(() => values.text(), maxTopics)
}

/** Waits until all members have joined. A broker that gives ids to members refuses the first call, with the id for the next one. */
export const joinGroup = (
  { group, memberId }: Membership,
  topic: string,
  assignors: ReadonlyArray<string>
): KafkaCall<Joined> => ({
  key: 11,
  versions: [2, 4],
  body: [
    text(group),
    int32(sessionMs),
    int32(rebalanceMs),
    text(memberId),
    text("consumer"),
    listOf(assignors.map((name) => Buffer.concat([text(name), bytes(subscriptionOf(topic))])))
  ],
  longest: longestOfMany,
  patience: joinPatience,
  read: (values) => {
    values.int32()
    return {
      error: values.int16(),
      generation: values.int32(),
      assignor: values.optionalText(),
      leader: values.text(),
      memberId: values.text(),
      members: values.list(() => ({ id: values.text(), topics: topicsIn(values.bytes()) }), maxMembers)
    }
  }
})

/** Partitions by their topics. */
export type Assignment = ReadonlyMap<string, ReadonlyArray<number>>

const assignmentOf = (assignment: Assignment): Buffer =>
  Buffer.concat([
    Buffer.from([0, 0]),
    listOf(Array.from(assignment, ([topic, numbers]) => Buffer.concat([text(topic), listOf(numbers.map(int32))]))),
    int32(-1)
  ])

/** The partitions of the topic, each once. A member that gets none may be told so with no bytes. */
const assignedIn = (assignment: Buffer, topic: string): ReadonlyArray<number> => {
  if (assignment.length === 0) return []
  const values = new KafkaValues(assignment)
  values.int16()
  const topics = values.list(
    () => ({ name: values.text(), numbers: values.list(() => values.int32(), maxPartitions) }),
    maxTopics
  )
  return [...new Set(topics.filter(({ name }) => name === topic).flatMap(({ numbers }) => numbers))]
}

/** Tells what is assigned to whom, if the member is the leader, and learns what is assigned to itself. */
export const syncGroup = (
  member: Membership,
  topic: string,
  assignments: ReadonlyMap<string, Assignment>
): KafkaCall<{ readonly error: number; readonly partitions: ReadonlyArray<number> }> => ({
  key: 14,
  versions: [1, 2],
  body: [
    ...membership(member),
    listOf(Array.from(assignments, ([id, assignment]) => Buffer.concat([text(id), bytes(assignmentOf(assignment))])))
  ],
  longest: longestOfMany,
  patience: joinPatience,
  read: (values) => {
    values.int32()
    return { error: values.int16(), partitions: assignedIn(values.bytes(), topic) }
  }
})

type Ended = { readonly error: number }

const afterThrottle = (values: KafkaValues): Ended => {
  values.int32()
  return { error: values.int16() }
}

export const heartbeat = (member: Membership): KafkaCall<Ended> => ({
  key: 12,
  versions: [1, 2],
  body: membership(member),
  longest: usualLongest,
  read: afterThrottle
})

export const leaveGroup = ({ group, memberId }: Membership): KafkaCall<Ended> => ({
  key: 13,
  versions: [1, 2],
  body: [text(group), text(memberId)],
  longest: usualLongest,
  read: afterThrottle
})

/** Offsets by partitions: of the next record that is to be read. */
export type Offsets = ReadonlyMap<number, bigint>

interface OfPartition {
  readonly partition: number
  readonly error: number
  readonly offset: bigint
}

/** What an answer says of the partitions of the one topic that was asked about. */
export const partitionsOf = <A>(values: KafkaValues, topic: string, read: () => A): ReadonlyArray<A> => {
  const [own, ...more] = values.list(() => ({ name: values.text(), partitions: values.list(read) }))
  if (own?.name !== topic || more.length > 0) throw breach("the broker tells of another topic than the one asked for")
  return own.partitions
}

/** The offsets that the group has committed; -1: none. */
export const fetchOffsets = (
  group: string,
  topic: string,
  partitions: ReadonlyArray<number>
): KafkaCall<{ readonly error: number; readonly offsets: ReadonlyArray<OfPartition> }> => ({
  key: 9,
  versions: [3, 4],
  body: [text(group), listOfOne(Buffer.concat([text(topic), listOf(partitions.map(int32))]))],
  longest: longestOfMany,
  read: (values) => {
    values.int32()
    const offsets = partitionsOf(values, topic, () => {
      const [partition, offset] = [values.int32(), values.int64()]
      values.optionalText()
      return { partition, offset, error: values.int16() }
    })
    return { offsets, error: values.int16() }
  }
})

/** The first error of a partition, or 0. */
export const commitOffsets = (member: Membership, topic: string, offsets: Offsets): KafkaCall<Ended> => ({
  key: 8,
  versions: [3, 4],
  body: [
    ...membership(member),
    // Kept as long as the broker keeps offsets.
    int64(-1n),
    listOfOne(
      Buffer.concat([
        text(topic),
        listOf(Array.from(offsets, ([number, offset]) => Buffer.concat([int32(number), int64(offset), nullText])))
      ])
    )
  ],
  longest: longestOfMany,
  read: (values) => {
    values.int32()
    const errors = partitionsOf(values, topic, () => {
      values.int32()
      return values.int16()
    })
    return { error: errors.find((error) => error !== 0) ?? 0 }
  }
})

/** How many partitions other topics have, of which a leader is told. A topic that is not there, or may not be seen, has none. */
export const countPartitions = (topics: ReadonlyArray<string>): KafkaCall<ReadonlyMap<string, number>> => ({
  key: 3,
  versions: [4, 4],
  body: [listOf(topics.map(text)), Buffer.from([0])],
  longest: longestOfMany,
  read: (values) => {
    values.int32()
    values.list(() => {
      values.int32()
      values.text()
      values.int32()
      values.optionalText()
    })
    values.optionalText()
    values.int32()
    return new Map(
      values.list(() => {
        values.int16()
        const name = values.text()
        values.boolean()
        const partitions = values.list(() => {
          for (const skip of ["int16", "int32", "int32"] as const) values[skip]()
          values.list(() => values.int32())
          values.list(() => values.int32())
        }, maxPartitions)
        return [name, partitions.length] as const
      }, maxTopics)
    )
  }
})
