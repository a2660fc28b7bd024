import type { Assignment, Member } from "./KafkaGroupCalls.ts"

/** How the leader of a consumer group shares the partitions: as Kafka's own assignors of the same names do, so that groups may be mixed. */

/** The number of partitions of each topic. */
export type PartitionCounts = ReadonlyMap<string, number>

type Assignor = (members: ReadonlyArray<Member>, counts: PartitionCounts) => ReadonlyMap<string, Assignment>

const byId = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : a.id > b.id ? 1 : 0

/** The members in their order, and which of them read a topic. */
const sharing = (members: ReadonlyArray<Member>) => {
  const turns = members.toSorted(byId)
  const readers = new Map<string, Array<number>>()
  for (const [place, { topics }] of turns.entries()) {
    for (const topic of new Set(topics)) {
      const places = readers.get(topic)
      if (places === undefined) readers.set(topic, [place])
      else places.push(place)
    }
  }
  const shares = turns.map(() => new Map<string, Array<number>>())
  return {
    /** The places of the members that read the topic. */
    readersOf: (topic: string): ReadonlyArray<number> => readers.get(topic) ?? [],
    give: (place: number, topic: string, partition: number): void => {
      const numbers = shares[place]!.get(topic)
      if (numbers === undefined) shares[place]!.set(topic, [partition])
      else numbers.push(partition)
    },
    shared: () => new Map(turns.map(({ id }, place) => [id, shares[place]!]))
  }
}

/** Of each topic, a member gets partitions that follow each other. The first members get one more where they cannot have the same number. */
const range: Assignor = (members, counts) => {
  const { give, readersOf, shared } = sharing(members)
  for (const [topic, count] of counts) {
    const readers = readersOf(topic)
    const least = Math.floor(count / Math.max(1, readers.length))
    const longer = count - least * readers.length
    let next = 0
    for (const [i, place] of readers.entries()) {
      for (const end = next + least + (i < longer ? 1 : 0); next < end; next++) give(place, topic, next)
    }
  }
  return shared()
}

/** All partitions of all topics are given to the members in turn. Who does not read a topic is passed over. */
const roundRobin: Assignor = (members, counts) => {
  const { give, readersOf, shared } = sharing(members)
  let turn = 0
  for (const [topic, count] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const readers = readersOf(topic)
    if (readers.length === 0) continue
    let at = Math.max(
      0,
      readers.findIndex((place) => place >= turn)
    )
    for (let partition = 0; partition < count; partition++, at = (at + 1) % readers.length) {
      give(readers[at]!, topic, partition)
      turn = (readers[at]! + 1) % members.length
    }
  }
  return shared()
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
