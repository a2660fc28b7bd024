/**
 * The cost of a message from one process to another: `node benchmarks/src/RemoteHop.ts`. It compares the library's plain sockets
 * with ours (TLS by the secret keys), one after the other in one run: messages one by one and 64 at once, of 1 KB and of 64 KB,
 * and the CPU time of both processes. It also measures a new connection until its first answer.
 */
import * as NodeClusterSocket from "@effect/platform-node/NodeClusterSocket"
import { Effect, Exit, Layer, Option, Schema, Scope } from "effect"
import {
  Entity,
  MessageStorage,
  Runner,
  RunnerAddress,
  RunnerStorage,
  type Sharding,
  ShardingConfig
} from "effect/cluster"
import { Rpc } from "effect/rpc"
import { createSecretKey, randomBytes } from "node:crypto"
import { createServer, type AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import * as ClusterWire from "../../packages/entities/src/Wire/ClusterWire.ts"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import { makeHistogram, record, summarize } from "./Latency.ts"
import * as Worker from "./Worker.ts"

type Wire = "plain" | "tls"

const Sink = Entity.make("Sink", [Rpc.make("Take", { payload: { bytes: Schema.Uint8Array }, success: Schema.Int })])

const host = "127.0.0.1"
const key = process.env["REMOTE_HOP_KEY"] ?? randomBytes(32).toString("hex")
const ring: KeyRing = [{ id: "a", fingerprint: "a", key: createSecretKey(Buffer.from(key, "hex")) }]

const config = (port: number | null) => {
  const address = Option.map(Option.fromNullOr(port), (port) => RunnerAddress.make(host, port))
  return {
    runnerAddress: address,
    runnerListenAddress: address,
    shardsPerGroup: 2,
    simulateRemoteSerialization: false,
    refreshAssignmentsInterval: "100 millis",
    sendRetryInterval: "20 millis"
  } as const
}

/** Child process: the runner of one kind of socket. */
const serve = async (wire: Wire): Promise<number> => {
  const port = await new Promise<number>((resolve) => {
    const server = createServer()
    server.listen(0, host, () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
  const cluster: Layer.Layer<Sharding.Sharding, unknown, RunnerStorage.RunnerStorage | MessageStorage.MessageStorage> =
    wire === "plain"
      ? NodeClusterSocket.layer({ storage: "byo", shardingConfig: config(port) })
      : Layer.provide(ClusterWire.layerRunner({ host, port }, ring), ShardingConfig.layer(config(port)))
  const runner = Sink.toLayer(
    { Take: ({ payload }) => Effect.succeed(payload.bytes.length) },
    { concurrency: "unbounded" }
  ).pipe(Layer.provide(cluster), Layer.provide([RunnerStorage.layerMemory, MessageStorage.layerNoop]))
  await Effect.runPromise(Layer.buildWithScope(runner, Scope.makeUnsafe()))
  return port
}

interface RunnerCommands extends Worker.Commands {
  readonly serve: (wire: Wire) => Promise<number>
  readonly cpuMicros: () => number
}

const cpuMicros = (): number => {
  const { system, user } = process.cpuUsage()
  return system + user
}

const client = Effect.fnUntraced(function* (wire: Wire, port: number) {
  const storage = yield* RunnerStorage.makeMemory
  yield* storage.register(
    Runner.make({ address: RunnerAddress.make(host, port), groups: ["default"], weight: 1 }),
    true
  )
  const cluster: Layer.Layer<Sharding.Sharding, unknown, RunnerStorage.RunnerStorage | MessageStorage.MessageStorage> =
    wire === "plain"
      ? NodeClusterSocket.layer({ storage: "byo", clientOnly: true, shardingConfig: config(null) })
      : Layer.provide(ClusterWire.layerClient(ring), ShardingConfig.layer(config(null)))
  const context = yield* Layer.build(
    Layer.provide(cluster, [Layer.succeed(RunnerStorage.RunnerStorage, storage), MessageStorage.layerNoop])
  )
  return (yield* Effect.provide(Sink.client, context))("sink")
})

const cases = [
  { name: "1 KB, one after the other", bytes: 1_024, atOnce: 1, messages: 1_000 },
  { name: "1 KB, 64 at once", bytes: 1_024, atOnce: 64, messages: 6_000 },
  { name: "64 KB, one after the other", bytes: 65_536, atOnce: 1, messages: 500 },
  { name: "64 KB, 64 at once", bytes: 65_536, atOnce: 64, messages: 1_500 }
] as const
const rounds = 5
const connections = 40

const median = (values: ReadonlyArray<number>): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

const bench = Effect.gen(function* () {
  process.env["REMOTE_HOP_KEY"] = key
  const wires = ["plain", "tls"] as const
  const subjects = yield* Effect.forEach(
    wires,
    Effect.fnUntraced(function* (wire) {
      const worker = yield* Worker.start<RunnerCommands>(fileURLToPath(import.meta.url))
      const port = yield* worker.call("serve", wire)
      return { wire, worker, port, sink: yield* client(wire, port) }
    })
  )
  const measure = Effect.fnUntraced(function* (
    { sink, worker }: (typeof subjects)[number],
    { atOnce, bytes, messages }: (typeof cases)[number]
  ) {
    const payload = { bytes: new Uint8Array(bytes) }
    yield* Effect.replicateEffect(sink.Take(payload), 200, { concurrency: atOnce, discard: true })
    const histogram = makeHistogram()
    const before = { own: cpuMicros(), other: yield* worker.call("cpuMicros", undefined), at: performance.now() }
    yield* Effect.replicateEffect(
      Effect.suspend(() => {
        const at = performance.now()
        return Effect.tap(sink.Take(payload), () =>
          Effect.sync(() => record(histogram, (performance.now() - at) * 1_000))
        )
      }),
      messages,
      { concurrency: atOnce, discard: true }
    )
    const elapsed = performance.now() - before.at
    const other = (yield* worker.call("cpuMicros", undefined)) - before.other
    return {
      rate: (messages * 1_000) / elapsed,
      cpu: (cpuMicros() - before.own + other) / messages,
      p50: summarize(histogram).p50 * 1_000
    }
  })
  /** From the start to the first answer: milliseconds, and CPU of both processes. */
  const connect = Effect.fnUntraced(function* ({ port, wire, worker }: (typeof subjects)[number]) {
    const times: Array<number> = []
    const before = { own: cpuMicros(), other: yield* worker.call("cpuMicros", undefined) }
    for (let index = 0; index < connections; index++) {
      const at = performance.now()
      yield* Effect.scoped(Effect.flatMap(client(wire, port), (sink) => sink.Take({ bytes: new Uint8Array(1) })))
      times.push(performance.now() - at)
    }
    const other = (yield* worker.call("cpuMicros", undefined)) - before.other
    return { p50: median(times), cpu: (cpuMicros() - before.own + other) / connections }
  })

  const line = (name: string, cells: ReadonlyArray<string>) =>
    process.stdout.write(`| ${[name, ...cells].join(" | ")} |\n`)
  line(
    "messages",
    wires.flatMap((wire) => [`${wire}: per second`, "CPU, µs", "p50, µs"])
  )
  line(
    "---",
    wires.flatMap(() => ["---", "---", "---"])
  )
  for (const one of cases) {
    const results = new Map(wires.map((wire) => [wire, [] as Array<Effect.Success<ReturnType<typeof measure>>>]))
    for (let round = 0; round < rounds; round++) {
      for (const subject of round % 2 === 0 ? subjects : subjects.toReversed()) {
        results.get(subject.wire)!.push(yield* measure(subject, one))
      }
    }
    line(
      one.name,
      wires.flatMap((wire) =>
        (["rate", "cpu", "p50"] as const).map((figure) =>
          median(results.get(wire)!.map((result) => result[figure])).toFixed(0)
        )
      )
    )
  }
  for (const subject of subjects) {
    const { cpu, p50 } = yield* connect(subject)
    process.stdout.write(
      `${subject.wire}: a new process's first answer ${p50.toFixed(1)} ms, ${cpu.toFixed(0)} µs of CPU\n`
    )
  }
})

if (process.send === undefined) {
  const exit = await Effect.runPromiseExit(Effect.scoped(bench))
  if (Exit.isFailure(exit)) throw new Error(String(exit.cause))
  process.exit(0)
} else {
  Worker.serve({ serve, cpuMicros } satisfies RunnerCommands)
}
