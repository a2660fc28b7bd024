import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { parentPort, Worker, workerData } from "node:worker_threads"

/** An attack: one kind of request, which is sent again and again. */
export interface Attack {
  readonly name: string
  readonly head: (path: string) => string
  /** The pieces of one request's body; called for each request. */
  readonly body: (round: number) => Iterable<Buffer>
}

const tenMillion = 10_000_000

function* oneByteChunks(): Iterable<Buffer> {
  const some = Buffer.from("1\r\nx\r\n".repeat(10_000))
  for (let sent = 0; sent < tenMillion; sent += 10_000) yield some
  yield Buffer.from("0\r\n\r\n")
}

const half = 5_200_000
let costlyJson: ReadonlyArray<Buffer> | undefined
const makeCostlyJson = (): ReadonlyArray<Buffer> => [
  Buffer.from("[".repeat(half) + "]".repeat(half)),
  Buffer.from(`[${"[],".repeat(3_466_000)}[]]`),
  Buffer.from("[".repeat(2 * half))
]

export const attacks: Readonly<Record<string, Attack>> = {
  chunks: {
    name: "10 million chunks of one byte",
    head: (path) => `POST ${path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`,
    body: oneByteChunks
  },
  json: {
    name: "10 MB of JSON that costs more than it weighs",
    head: (path) =>
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
    *body(round) {
      const json = (costlyJson ??= makeCostlyJson())[round % 3]!
      yield Buffer.from(`${json.length.toString(16)}\r\n`)
      yield json
      yield Buffer.from("\r\n0\r\n\r\n")
    }
  }
}

export interface Order {
  readonly attack: string
  readonly port: number
  readonly path: string
  readonly connections: number
  readonly seconds: number
  /** The most requests that each connection makes; null: as many as fit into the time. */
  readonly requests: number | null
}

export interface Toll {
  /** How often each status came; "none": the connection ended without an answer. */
  readonly answers: Readonly<Record<string, number>>
  readonly bytes: number
}

/** Attacks from a separate thread, so that a measurement in this thread measures the gateway and not the attacker. */
export const attackFrom = async (order: Order): Promise<Toll> => {
  const worker = new Worker(new URL(import.meta.url), { workerData: order })
  const [toll] = (await once(worker, "message")) as [Toll]
  await worker.terminate()
  return toll
}

/** Sends one request until the gateway answers or ends it. Returns the answer's status. */
const send = async (order: Order, round: number, until: number, count: (bytes: number) => void): Promise<string> => {
  const attack = attacks[order.attack]!
  const socket = connect(order.port, "127.0.0.1")
  let answer = ""
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()))
  const answered = new Promise<void>((resolve) => {
    socket.on("data", (bytes: Buffer) => {
      answer += bytes.toString("latin1")
      resolve()
    })
  })
  socket.on("error", () => {})
  const timer = setTimeout(() => socket.destroy(), Math.max(0, until - performance.now()) + 5_000)
  socket.write(attack.head(order.path))
  for (const piece of attack.body(round)) {
    if (socket.destroyed || answer !== "" || performance.now() > until) break
    count(piece.length)
    if (!socket.write(piece)) await Promise.race([drained(socket), closed, answered])
  }
  await Promise.race([answered, closed])
  clearTimeout(timer)
  socket.destroy()
  await closed
  return /^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? "none"
}

const drained = (socket: Socket): Promise<void> => new Promise((resolve) => socket.once("drain", () => resolve()))

const run = async (order: Order): Promise<Toll> => {
  const answers: Record<string, number> = {}
  let bytes = 0
  const until = performance.now() + order.seconds * 1_000
  const one = async (index: number): Promise<void> => {
    for (let sent = 0; performance.now() < until && sent !== order.requests; sent++) {
      const status = await send(order, index + sent, until, (more) => {
        bytes += more
      })
      answers[status] = (answers[status] ?? 0) + 1
    }
  }
  await Promise.all(Array.from({ length: order.connections }, (_, index) => one(index)))
  return { answers, bytes }
}

if (parentPort !== null && typeof workerData === "object" && workerData !== null && "attack" in workerData) {
  const port = parentPort
  void run(workerData as Order).then((toll) => port.postMessage(toll))
}
