import type { Socket } from "node:net"
import { bytes, int16, int32, type KafkaValues, listOf, nullText, text } from "../src/KafkaFrames.ts"
import type { Call } from "./FakeKafka.ts"

/** The consumer groups of a fake broker. A member whose connection ends is gone at once: nothing depends on the time. */

interface Member {
  readonly id: string
  readonly socket: Socket
  readonly topics: ReadonlyArray<string>
  readonly subscription: Buffer
  readonly assignors: ReadonlyArray<string>
  /** A join, and later a sync, that waits for its answer. */
  waiting: Call | null
}

interface Group {
  readonly members: Map<string, Member>
  generation: number
  /** Whether members must join again. */
  isForming: boolean
  assignments: ReadonlyMap<string, Buffer> | null
  /** By topic and partition. */
  readonly committed: Map<string, number>
}

export const groupCalls = {
  commit: 8,
  offsets: 9,
  coordinator: 10,
  join: 11,
  heartbeat: 12,
  leave: 13,
  sync: 14
} as const

const noThrottle = int32(0)
const ended = (error: number): Buffer => Buffer.concat([noThrottle, int16(error)])
const joinRefused = (error: number, id = ""): Buffer =>
  Buffer.concat([noThrottle, int16(error), int32(-1), text(""), text(""), text(id), int32(0)])

const long = (value: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(BigInt(value))
  return buffer
}

const topicsIn = (subscription: Buffer): ReadonlyArray<string> => {
  const count = subscription.readInt32BE(2)
  let at = 6
  return Array.from({ length: count }, () => {
    const length = subscription.readInt16BE(at)
    at += 2 + length
    return subscription.toString("utf8", at - length, at)
  })
}

interface Host {
  /** Which offset of a partition was committed before, and which is now. */
  readonly committed: (topic: string, partition: number, from: number, to: number) => void
  /** A call is answered that has waited. */
  readonly answered: (socket: Socket, call: Call, body: Buffer) => void
}

export class FakeKafkaGroups {
  readonly #groups = new Map<string, Group>()
  #ids = 0
  readonly #host: Host
  /** Commits that were asked for, in their order. */
  readonly commits: Array<readonly [partition: number, offset: number]> = []

  constructor(host: Host) {
    this.#host = host
  }

  group(name: string): Group {
    let group = this.#groups.get(name)
    if (group === undefined) {
      group = { members: new Map(), generation: 0, isForming: false, assignments: null, committed: new Map() }
      this.#groups.set(name, group)
    }
    return group
  }

  /** The members that read a topic. */
  readers(topic: string): ReadonlySet<string> {
    const all = [...this.#groups.values()].flatMap(({ members }) => Array.from(members.values()))
    return new Set(all.filter(({ topics }) => topics.includes(topic)).map(({ id }) => id))
  }

  /** Members must join again, as if there were another one. */
  form(name: string): void {
    this.group(name).isForming = true
  }

  /** The group does not know its members any more. */
  forget(name: string): void {
    this.group(name).members.clear()
  }

  gone(socket: Socket): void {
    for (const group of this.#groups.values()) {
      for (const member of group.members.values()) if (member.socket === socket) this.#remove(group, member.id)
    }
  }

  /** Undefined: it is a call of another kind. Null: it is answered later. */
  answer(call: Call, socket: Socket): Buffer | null | undefined {
    const { key, values } = call
    switch (key) {
      case groupCalls.coordinator:
        return Buffer.concat([noThrottle, int16(0), nullText, int32(1), text("127.0.0.1"), int32(socket.localPort!)])
      case groupCalls.join:
        return this.#join(call, socket)
      case groupCalls.sync:
        return this.#sync(call)
      case groupCalls.heartbeat:
        return ended(this.#error(this.group(values.text()), values.int32(), values.text()))
      case groupCalls.leave: {
        const group = this.group(values.text())
        this.#remove(group, values.text())
        return ended(0)
      }
      case groupCalls.offsets:
        return this.#offsets(values)
      case groupCalls.commit:
        return this.#commit(values)
      default:
        return undefined
    }
  }

  #error(group: Group, generation: number, id: string): number {
    if (!group.members.has(id)) return 25
    if (generation !== group.generation) return 22
    return group.isForming ? 27 : 0
  }

  #remove(group: Group, id: string): void {
    if (!group.members.delete(id)) return
    group.isForming = true
    this.#form(group)
  }

  #join(call: Call, socket: Socket): Buffer | null {
    const { values } = call
    const group = this.group(values.text())
    values.int32()
    values.int32()
    const id = values.text()
    values.text()
    const protocols = values.list(() => ({ name: values.text(), subscription: values.bytes() }))
    if (id === "") return joinRefused(79, `member-${++this.#ids}`)
    const { subscription } = protocols[0]!
    const assignors = protocols.map(({ name }) => name)
    group.members.set(id, { id, socket, subscription, assignors, topics: topicsIn(subscription), waiting: call })
    group.isForming = true
    this.#form(group)
    return null
  }

  /** All members have joined: they are a new generation. */
  #form(group: Group): void {
    const members = [...group.members.values()]
    if (!group.isForming || members.length === 0 || members.some(({ waiting }) => waiting?.key !== groupCalls.join))
      return
    group.generation++
    group.isForming = false
    group.assignments = null
    const assignor = members[0]!.assignors.find((name) => members.every(({ assignors }) => assignors.includes(name)))!
    const told = listOf(members.map(({ id, subscription }) => Buffer.concat([text(id), bytes(subscription)])))
    for (const [i, member] of members.entries()) {
      const head = [
        noThrottle,
        int16(0),
        int32(group.generation),
        text(assignor),
        text(members[0]!.id),
        text(member.id)
      ]
      const call = member.waiting!
      member.waiting = null
      this.#host.answered(member.socket, call, Buffer.concat([...head, i === 0 ? told : int32(0)]))
    }
  }

  #sync(call: Call): Buffer | null {
    const { values } = call
    const group = this.group(values.text())
    const [generation, id] = [values.int32(), values.text()]
    const assignments = values.list(() => [values.text(), values.bytes()] as const)
    const error = this.#error(group, generation, id)
    if (error !== 0) return Buffer.concat([ended(error), int32(0)])
    if (assignments.length > 0) group.assignments = new Map(assignments)
    group.members.get(id)!.waiting = call
    if (group.assignments === null) return null
    for (const member of group.members.values()) {
      if (member.waiting?.key !== groupCalls.sync) continue
      const own = group.assignments.get(member.id) ?? Buffer.alloc(0)
      const waiting = member.waiting
      member.waiting = null
      this.#host.answered(member.socket, waiting, Buffer.concat([noThrottle, int16(0), bytes(own)]))
    }
    return null
  }

  #offsets(values: KafkaValues): Buffer {
    const { committed } = this.group(values.text())
    const topics = values.list(() => [values.text(), values.list(() => values.int32())] as const)
    const answers = topics.map(([topic, partitions]) =>
      Buffer.concat([
        text(topic),
        listOf(
          partitions.map((number) =>
            Buffer.concat([int32(number), long(committed.get(`${topic} ${number}`) ?? -1), nullText, int16(0)])
          )
        )
      ])
    )
    return Buffer.concat([noThrottle, listOf(answers), int16(0)])
  }

  #commit(values: KafkaValues): Buffer {
    const group = this.group(values.text())
    const error = this.#error(group, values.int32(), values.text())
    values.int64()
    const topics = values.list(() => ({
      name: values.text(),
      partitions: values.list(() => {
        const one = [values.int32(), Number(values.int64())] as const
        values.optionalText()
        return one
      })
    }))
    for (const { name, partitions } of topics) {
      for (const [number, offset] of partitions) {
        // The group forms anew: offsets of the generation before are still taken.
        if (error !== 0 && error !== 27) continue
        const key = `${name} ${number}`
        this.commits.push([number, offset])
        this.#host.committed(name, number, group.committed.get(key) ?? 0, offset)
        group.committed.set(key, offset)
      }
    }
    const kept = error === 27 ? 0 : error
    const answers = topics.map(({ name, partitions }) =>
      Buffer.concat([text(name), listOf(partitions.map(([number]) => Buffer.concat([int32(number), int16(kept)])))])
    )
    return Buffer.concat([noThrottle, listOf(answers)])
  }
}
