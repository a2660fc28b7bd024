import type { Assignment, Member } from "./KafkaGroupCalls.ts"

/** How the leader of a consumer group shares the partitions: as Kafka's own assignors of the same names do, so that groups may be mixed. */

/** The number of partitions of each topic. */
export type PartitionCounts = ReadonlyMap<string, number>

type Assignor = (members: ReadonlyArray<Member>, counts: PartitionCounts) => ReadonlyMap<string, Assignment>

const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0

const sharing = (members: ReadonlyArray<Member>) => {
  const shares = new Map(members.map(({ id }) => [id, new Map<string, Array<number>>()]))
  const give = (id: string, topic: string, partition: number): void => {
    const share = shares.get(id)!
    const numbers = share.get(topic)
    if (numbers === undefined) share.set(topic, [partition])
    else numbers.push(partition)
  }
  return { shares, give }
}

/** Of each topic, a member gets partitions that follow each other. The first members get one more where they cannot have the same number. */
const range: Assignor = (members, counts) => {
  const { give, shares } = sharing(members)
  for (const [topic, count] of counts) {
    const readers = members.filter(({ topics }) => topics.includes(topic)).toSorted(byId)
    const most = readers.length === 0 ? 0 : Math.floor(count / readers.length)
    const longer = count - most * readers.length
    let next = 0
    for (const [i, { id }] of readers.entries()) {
      for (const end = next + most + (i < longer ? 1 : 0); next < end; next++) give(id, topic, next)
    }
  }
  return shares
}

/** All partitions of all topics are given to the members in turn. */
const roundRobin: Assignor = (members, counts) => {
  const { give, shares } = sharing(members)
  const turns = members.toSorted(byId)
  const readers = new Map(turns.map(({ id, topics }) => [id, new Set(topics)]))
  let turn = 0
  for (const [topic, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!turns.some(({ id }) => readers.get(id)!.has(topic))) continue
    for (let partition = 0; partition < count; partition++) {
      while (!readers.get(turns[turn % turns.length]!.id)!.has(topic)) turn++
      give(turns[turn++ % turns.length]!.id, topic, partition)
    }
  }
  return shares
}

const assignors: ReadonlyMap<string, Assignor> = new Map([
  ["range", range],
  ["roundrobin", roundRobin]
])

/** The best one first: a group takes one that all of its members know. */
export const assignorNames: ReadonlyArray<string> = [...assignors.keys()]

/** Null: there is no assignor of this name. */
export const assigned = (
  name: string,
  members: ReadonlyArray<Member>,
  counts: PartitionCounts
): ReadonlyMap<string, Assignment> | null => assignors.get(name)?.(members, counts) ?? null
