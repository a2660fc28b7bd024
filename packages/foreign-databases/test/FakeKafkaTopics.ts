import { createServer, type Server, type Socket } from "node:net"
import { bytes, int16, int32, listOf, text } from "../src/KafkaFrames.ts"
import {
  answerTo,
  authenticateAnswer,
  type Call,
  calls,
  handshakeAnswer,
  int64,
  metadataAnswer,
  serving,
  versionsAnswer
} from "./FakeKafka.ts"
import { FakeKafkaGroups } from "./FakeKafkaGroups.ts"
import type { FakeMessage, Queue } from "./FakeRabbit.ts"
import { batchOf } from "./KafkaBatchOf.ts"

/** A Kafka of one broker, with topics that consumer groups read. Nothing is ever in `dead`: a group is not told that a record is of no use. */

interface Log {
  /** The oldest offset that there is, and the one of the next record. */
  start: number
  end: number
  readonly batches: Array<{ readonly end: number; readonly batch: Buffer }>
  readonly ids: Map<number, string>
  readonly aborted: Array<{ readonly producer: number; readonly from: number }>
}

interface Topic extends Queue<string> {
  readonly logs: ReadonlyArray<Log>
}

interface Poll {
  readonly socket: Socket
  readonly call: Call
  readonly wants: ReadonlyArray<readonly [partition: number, offset: number]>
  readonly topic: string
  readonly most: number
  readonly timer: NodeJS.Timeout
}

export const consumingCalls = { fetch: 1, list: 2 } as const

/** Highest versions. */
const spoken = { 1: 10, 2: 3, 3: 4, 8: 4, 9: 4, 10: 2, 11: 4, 12: 2, 13: 2, 14: 2, 17: 1, 18: 0, 36: 1 }

/** Undefined: as usual. */
export type Instead = (call: Call, socket: Socket) => Buffer | null | undefined

export class FakeKafkaTopics {
  readonly password: string
  readonly groups = new FakeKafkaGroups({
    committed: (name, partition, from, to) => this.#settle(name, partition, from, to),
    answered: (socket, call, body) => this.#answered(socket, call, body)
  })
  readonly #partitions: number
  readonly #topics = new Map<string, Topic>()
  /** Calls of a connection that wait until the one before them is answered. */
  readonly #sockets = new Map<Socket, { readonly calls: Array<Call>; isBusy: boolean }>()
  readonly #polls = new Set<Poll>()
  readonly #server: Server
  #published = 0
  /** Fetches that were asked for. */
  fetches = 0
  instead: Instead = () => undefined

  private constructor(password: string, partitions: number) {
    this.password = password
    this.#partitions = partitions
    this.#server = createServer((socket) => this.#serve(socket))
  }

  static start(password = "wr1ter-p4ssword", partitions = 1): Promise<FakeKafkaTopics> {
    const broker = new FakeKafkaTopics(password, partitions)
    return new Promise((resolve) => broker.#server.listen(0, "127.0.0.1", () => resolve(broker)))
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  queue(name: string): Topic {
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      const { groups } = this
      const logs = Array.from({ length: this.#partitions }, (): Log => ({
        start: 0,
        end: 0,
        batches: [],
        ids: new Map(),
        aborted: []
      }))
      topic = {
        logs,
        settled: [],
        dead: [],
        mostUnsettled: 0,
        get consumers() {
          return groups.readers(name)
        }
      }
      this.#topics.set(name, topic)
    }
    return topic
  }

  /** Each message is a batch; they go to the partitions in turn. */
  publish(name: string, ...messages: ReadonlyArray<FakeMessage>): void {
    for (const message of messages) {
      const partition = this.#published++ % this.#partitions
      const log = this.queue(name).logs[partition]!
      const { body, contentType = "application/json", headers = {}, routingKey = null } = message
      const record = {
        key: routingKey,
        headers: { ...(contentType === null ? {} : { content_type: contentType }), ...headers },
        value: Buffer.from(body)
      }
      log.ids.set(log.end, message.id)
      this.append(name, partition, batchOf({ first: log.end, records: [record] }))
    }
  }

  append(name: string, partition: number, batch: Buffer): void {
    const log = this.queue(name).logs[partition]!
    log.end = Number(batch.readBigInt64BE(0)) + batch.readInt32BE(23) + 1
    log.batches.push({ end: log.end, batch })
    for (const poll of this.#polls) if (poll.topic === name) this.#give(poll, false)
  }

  /** Cuts all connections. */
  cut(): void {
    for (const socket of this.#sockets.keys()) socket.destroy()
  }

  close(): Promise<void> {
    this.cut()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #settle(name: string, partition: number, from: number, to: number): void {
    const { logs, settled } = this.queue(name)
    for (let offset = from; offset < to; offset++)
      settled.push(logs[partition]!.ids.get(offset) ?? `${partition} ${offset}`)
  }

  #fetched({ call, most, topic, wants }: Poll): { readonly size: number; readonly body: Buffer } {
    let size = 0
    const partitions = wants.map(([number, offset]) => {
      const log = this.queue(topic).logs[number]!
      const isOutside = offset < log.start || offset > log.end
      const given: Array<Buffer> = []
      if (isOutside) size++ // A refusal does not wait for records.
      for (const { batch, end } of isOutside ? [] : log.batches) {
        if (end <= offset) continue
        if (size > 0 && size + batch.length > most) break
        size += batch.length
        given.push(batch)
      }
      const aborted = listOf(log.aborted.map(({ from, producer }) => Buffer.concat([int64(producer), int64(from)])))
      return Buffer.concat([
        int32(number),
        int16(isOutside ? 1 : 0),
        int64(log.end),
        int64(log.end),
        ...(call.version >= 5 ? [int64(log.start)] : []),
        aborted,
        bytes(Buffer.concat(given))
      ])
    })
    const beside = call.version >= 7 ? [int16(0), int32(0)] : []
    return {
      size,
      body: Buffer.concat([int32(0), ...beside, listOf([Buffer.concat([text(topic), listOf(partitions)])])])
    }
  }

  #give(poll: Poll, isOver: boolean): void {
    const { body, size } = this.#fetched(poll)
    if (size === 0 && !isOver) return
    clearTimeout(poll.timer)
    this.#polls.delete(poll)
    this.#answered(poll.socket, poll.call, body)
  }

  #fetch(call: Call, socket: Socket): void {
    this.fetches++
    const { values, version } = call
    values.int32()
    const wait = values.int32()
    values.int32()
    const most = values.int32()
    values.int8()
    if (version >= 7) values.int64()
    const [topic] = values.list(() => ({
      name: values.text(),
      wants: values.list(() => {
        const number = values.int32()
        if (version >= 9) values.int32()
        const offset = Number(values.int64())
        if (version >= 5) values.int64()
        values.int32()
        return [number, offset] as const
      })
    }))
    const poll: Poll = {
      socket,
      call,
      most,
      wants: topic!.wants,
      topic: topic!.name,
      timer: setTimeout(() => this.#give(poll, true), wait)
    }
    this.#polls.add(poll)
    this.#give(poll, false)
  }

  #list({ values }: Call): Buffer {
    values.int32()
    values.int8()
    const topics = values.list(() => ({
      name: values.text(),
      wants: values.list(() => [values.int32(), values.int64()] as const)
    }))
    const answers = topics.map(({ name, wants }) => {
      const { logs } = this.queue(name)
      const partitions = wants.map(([number, edge]) => {
        const { end, start } = logs[number]!
        return Buffer.concat([int32(number), int16(0), int64(-1), int64(edge === -2n ? start : end)])
      })
      return Buffer.concat([text(name), listOf(partitions)])
    })
    return Buffer.concat([int32(0), listOf(answers)])
  }

  #answer(call: Call, socket: Socket): Buffer | null {
    const { key, values } = call
    switch (key) {
      case calls.versions:
        return versionsAnswer(spoken)
      case calls.handshake:
        return handshakeAnswer()
      case calls.authenticate: {
        const isRight = values.bytes().toString().endsWith(`\0${this.password}`)
        return isRight ? authenticateAnswer() : authenticateAnswer("", 58, "no")
      }
      case calls.metadata: {
        const [topic] = values.list(() => values.text())
        const leaders = this.queue(topic!).logs.map(() => 1)
        return metadataAnswer({ brokers: [[1, "127.0.0.1", this.port]], leaders, topic: topic! })
      }
      case consumingCalls.fetch:
        this.#fetch(call, socket)
        return null
      case consumingCalls.list:
        return this.#list(call)
      default:
        return this.groups.answer(call, socket) ?? null
    }
  }

  #answered(socket: Socket, call: Call, body: Buffer): void {
    const state = this.#sockets.get(socket)
    if (state === undefined || !socket.writable) return
    socket.write(answerTo(call, body))
    state.isBusy = false
    this.#next(socket)
  }

  /** Calls of a connection are answered one after the other, as Kafka does. */
  #next(socket: Socket): void {
    const state = this.#sockets.get(socket)
    if (state === undefined || state.isBusy) return
    const call = state.calls.shift()
    if (call === undefined) return
    state.isBusy = true
    const own = this.instead(call, socket)
    const body = own === undefined ? this.#answer(call, socket) : own
    if (body !== null) this.#answered(socket, call, body)
  }

  #serve(socket: Socket): void {
    this.#sockets.set(socket, { calls: [], isBusy: false })
    socket.on("error", () => undefined)
    socket.once("close", () => {
      this.#sockets.delete(socket)
      this.groups.gone(socket)
      for (const poll of this.#polls) {
        if (poll.socket !== socket) continue
        clearTimeout(poll.timer)
        this.#polls.delete(poll)
      }
    })
    serving(socket, (call) => {
      this.#sockets.get(socket)?.calls.push(call)
      this.#next(socket)
      return null
    })
  }
}
