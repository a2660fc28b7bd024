import type { Socket } from "node:net"
import { FrameCutter } from "../src/FrameCutter.ts"
import { bytes, int16, int32, KafkaValues, listOf, listOfOne, nullText, text } from "../src/KafkaFrames.ts"

/** A broker of Kafka as a suite wants it. */

/** A call of a client, without its header. */
export interface Call {
  readonly key: number
  readonly version: number
  readonly correlation: number
  readonly values: KafkaValues
}

export const calls = { produce: 0, metadata: 3, handshake: 17, versions: 18, producer: 22, authenticate: 36 } as const

export const int64 = (value: number): Buffer => {
  const buffer = Buffer.alloc(8)
  buffer.writeBigInt64BE(BigInt(value))
  return buffer
}

export const answerTo = ({ correlation }: Pick<Call, "correlation">, ...body: ReadonlyArray<Buffer>): Buffer => {
  const content = Buffer.concat([int32(correlation), ...body])
  return Buffer.concat([int32(content.length), content])
}

/** Highest versions that the fake broker speaks. */
const spoken: Readonly<Record<number, number>> = { 0: 8, 3: 4, 17: 1, 18: 0, 22: 1, 36: 1 }

export const versionsAnswer = (highest = spoken): Buffer =>
  Buffer.concat([
    int16(0),
    listOf(Object.entries(highest).map(([key, to]) => Buffer.concat([int16(Number(key)), int16(0), int16(to)])))
  ])

export interface Told {
  readonly brokers: ReadonlyArray<readonly [id: number, host: string, port: number]>
  /** The leader of each partition. */
  readonly leaders: ReadonlyArray<number>
  readonly error?: number
  readonly topic?: string
  /** The partitions' numbers, if they are not in order. */
  readonly numbers?: ReadonlyArray<number>
}

export const metadataAnswer = ({
  brokers,
  error = 0,
  leaders,
  numbers = [...leaders.keys()],
  topic = "orders"
}: Told): Buffer =>
  Buffer.concat([
    int32(0),
    listOf(brokers.map(([id, host, port]) => Buffer.concat([int32(id), text(host), int32(port), nullText]))),
    text("cluster"),
    int32(1),
    listOfOne(
      Buffer.concat([
        int16(error),
        text(topic),
        Buffer.from([0]),
        listOf(
          leaders.map((leader, i) =>
            Buffer.concat([int16(0), int32(numbers[i]!), int32(leader), listOfOne(int32(1)), listOfOne(int32(1))])
          )
        )
      ])
    )
  ])

/** Records as they came. */
export interface Written {
  readonly partition: number
  readonly producer: number
  readonly sequence: number
  readonly count: number
  readonly batch: Buffer
}

export const writtenIn = ({ values }: Call): Written => {
  values.optionalText()
  values.int16()
  values.int32()
  values.int32()
  values.text()
  values.int32()
  const partition = values.int32()
  const batch = values.bytes()
  return {
    partition,
    batch,
    producer: Number(batch.readBigInt64BE(43)),
    sequence: batch.readInt32BE(53),
    count: batch.readInt32BE(57)
  }
}

export const producedAnswer = (
  partition: number,
  {
    error = 0,
    offset = 0,
    said = "",
    topic = "orders"
  }: { error?: number; offset?: number; said?: string; topic?: string } = {}
): Buffer =>
  Buffer.concat([
    listOfOne(
      Buffer.concat([
        text(topic),
        listOfOne(
          Buffer.concat([int32(partition), int16(error), int64(offset), int64(-1), int64(0), int32(0), text(said)])
        )
      ])
    ),
    int32(0)
  ])

export const producerAnswer = (id: number, error = 0): Buffer =>
  Buffer.concat([int32(0), int16(error), int64(id), int16(0)])

export const handshakeAnswer = (error = 0): Buffer => Buffer.concat([int16(error), listOfOne(text("OTHER"))])

export const authenticateAnswer = (words = "", error = 0, said = "", lifetime = 0): Buffer =>
  Buffer.concat([int16(error), text(said), bytes(Buffer.from(words)), int64(lifetime)])

/** What a suite answers otherwise than a broker that takes everything does. `undefined`: as such a broker. */
export type Answer = (call: Call, socket: Socket) => Buffer | null | undefined

/** Answers the calls that come over a connection. Null: nothing is answered now. */
export const serving = (socket: Socket, answer: (call: Call) => Buffer | null): void => {
  const cutter = new FrameCutter(4, (head) => ({ size: head.readInt32BE(0) + 4, isDropped: false }))
  socket.on("data", (chunk: Buffer) =>
    cutter.read(chunk, (frame) => {
      const values = new KafkaValues(frame.subarray(4))
      const call = { key: values.int16(), version: values.int16(), correlation: values.int32(), values }
      values.text()
      const body = answer(call)
      if (body !== null && socket.writable) socket.write(answerTo(call, body))
    })
  )
}

/** A broker that lets everybody in and takes everything, besides what `answer` does. Null: nothing is answered. */
export const broker =
  (answer: Answer, leaders: ReadonlyArray<number> = [1]) =>
  (socket: Socket): void => {
    const usual = (call: Call): Buffer | null => {
      switch (call.key) {
        case calls.versions:
          return versionsAnswer()
        case calls.handshake:
          return handshakeAnswer()
        case calls.authenticate:
          return authenticateAnswer()
        case calls.metadata:
          return metadataAnswer({ brokers: [[1, "target.test", socket.localPort!]], leaders })
        case calls.producer:
          return producerAnswer(7)
        case calls.produce:
          return producedAnswer(writtenIn(call).partition)
        default:
          return null
      }
    }
    serving(socket, (call) => {
      const own = answer(call, socket)
      return own === undefined ? usual(call) : own
    })
  }

/** Answers calls of one kind otherwise. */
export const instead =
  (key: number, body: Buffer | ((call: Call, socket: Socket) => Buffer | null | undefined)): Answer =>
  (call, socket) =>
    call.key === key ? (typeof body === "function" ? body(call, socket) : body) : undefined
