import { createSecretKey, randomBytes } from "node:crypto"
import { type AddressInfo, connect, createServer, type Socket } from "node:net"
import * as Tls from "node:tls"
import { Deferred, Effect, Layer, Logger, Option, References, Schema } from "effect"
import { Entity, MessageStorage, Runner, RunnerAddress, RunnerStorage, ShardingConfig } from "effect/cluster"
import { Rpc } from "effect/rpc"
import type { KeyRing, SecretKey } from "@tidegate/storage/secrets/Secrets"
import * as Ports from "../../../test/support/Ports.ts"
import * as ClusterWire from "../src/Wire/ClusterWire.ts"
import { type PeerAddress, type PeerKey, peerKeys } from "../src/Wire/PeerKeys.ts"

export const newKey = (id: string): SecretKey => ({ id, fingerprint: id, key: createSecretKey(randomBytes(32)) })

/** `Say` answers with so many bytes; `Wait` answers when the test lets it. */
export const Echo = Entity.make("Echo", [
  Rpc.make("Say", { payload: { bytes: Schema.Uint8Array, answer: Schema.Int }, success: Schema.Uint8Array }),
  Rpc.make("Wait", { success: Schema.String })
])

const host = "127.0.0.1"

export const freePort = Effect.promise(Ports.freePort)

const config = (address: PeerAddress | null) => {
  const runnerAddress = Option.map(Option.fromNullOr(address), ({ host, port }) => RunnerAddress.make(host, port))
  return ShardingConfig.layer({
    runnerAddress,
    runnerListenAddress: runnerAddress,
    shardsPerGroup: 2,
    simulateRemoteSerialization: false,
    refreshAssignmentsInterval: "50 millis",
    sendRetryInterval: "50 millis",
    entityTerminationTimeout: "1 second"
  })
}

/** A runner with one entity, on a port of its own, until the scope closes. */
export const runner = Effect.fnUntraced(function* (keys: KeyRing) {
  const address = { host, port: yield* freePort }
  const log: Array<{ readonly message: string; readonly [annotation: string]: unknown }> = []
  let calls = 0
  let waiting = 0
  const released = yield* Deferred.make<void>()
  const echo = Echo.toLayer(
    {
      Say: ({ payload }) =>
        Effect.sync(() => {
          calls++
          return new Uint8Array(payload.answer)
        }),
      Wait: () =>
        Effect.suspend(() => {
          waiting++
          return Effect.as(Deferred.await(released), "at last")
        })
    },
    { concurrency: "unbounded" }
  )
  const logger = Logger.make(({ fiber, message }) => {
    log.push({ message: String(message), ...fiber.getRef(References.CurrentLogAnnotations) })
  })
  yield* Layer.build(
    echo.pipe(
      Layer.provide(ClusterWire.layerRunner(address, keys)),
      Layer.provide([RunnerStorage.layerMemory, MessageStorage.layerNoop, config(address), Logger.layer([logger])])
    )
  )
  return {
    address,
    calls: () => calls,
    waiting: () => waiting,
    release: Deferred.succeed(released, undefined),
    /** What it told about peers that it refused. */
    refusals: () => log.filter(({ message }) => message.includes("has not proven a key"))
  }
})

/** The entity as a process with these keys reaches it, that believes the runner to be at `address`. */
export const client = Effect.fnUntraced(function* (keys: KeyRing, { host, port }: PeerAddress) {
  const storage = yield* RunnerStorage.makeMemory
  yield* storage.register(
    Runner.make({ address: RunnerAddress.make(host, port), groups: ["default"], weight: 1 }),
    true
  )
  const context = yield* Layer.build(
    ClusterWire.layerClient(keys).pipe(
      Layer.provide([Layer.succeed(RunnerStorage.RunnerStorage, storage), MessageStorage.layerNoop, config(null)])
    )
  )
  const entity = yield* Effect.provide(Echo.client, context)
  return entity("echo")
})

/** A connection that goes by itself: what comes of it, and when it is over. */
export interface Bare {
  readonly socket: Socket
  readonly received: () => Buffer
  readonly closed: Promise<void>
}

const bare = (socket: Socket): Bare => {
  const chunks: Array<Buffer> = []
  socket.on("data", (chunk: Buffer) => chunks.push(chunk))
  socket.on("error", () => {})
  return {
    socket,
    received: () => Buffer.concat(chunks),
    closed: new Promise((resolve) => socket.once("close", () => resolve()))
  }
}

export const plain = ({ host, port }: PeerAddress): Bare => bare(connect(port, host))

const suite = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const

/** A peer with this key, reached at `address`. */
export const withKey = (key: PeerKey, { host, port }: PeerAddress): Promise<Bare> =>
  new Promise((resolve, reject) => {
    const socket = Tls.connect({ ...suite, host, port, pskCallback: () => key })
    socket.once("error", reject)
    socket.once("secureConnect", () => resolve(bare(socket)))
  })

/** A peer that proves the key to the runner at `address`, reached at `through`. */
export const proven = (key: SecretKey, address: PeerAddress, through = address): Promise<Bare> =>
  withKey(peerKeys([key], address)[0]!, through)

/** Something that listens in a runner's place, until the scope closes; `on` gets each connection. */
const listener = (
  make: (on: (socket: Socket) => void) => ReturnType<typeof createServer>,
  on: (socket: Socket) => void
) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly address: PeerAddress; readonly close: () => void }>((resume) => {
      const open = new Set<Socket>()
      const server = make((socket) => {
        open.add(socket)
        socket.on("error", () => {})
        on(socket)
      })
      server.listen(0, host, () => {
        const close = (): void => {
          server.close()
          open.forEach((socket) => socket.destroy())
        }
        resume(Effect.succeed({ address: { host, port: (server.address() as AddressInfo).port }, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

/** Passes on what comes, and keeps what clients sent. */
export const tap = Effect.fnUntraced(function* ({ host, port }: PeerAddress) {
  const sent: Array<Buffer> = []
  const { address } = yield* listener(
    (on) => createServer(on),
    (socket) => {
      const onward = connect(port, host)
      onward.on("error", () => socket.destroy())
      socket.on("data", (chunk: Buffer) => sent.push(chunk))
      socket.pipe(onward).pipe(socket)
    }
  )
  return { address, sent: () => Buffer.concat(sent) }
})

/** A listener that has the keys of a runner and answers each thing that comes with `answer`, or nothing. */
export const impostor = Effect.fnUntraced(function* (keys: KeyRing, answer: Uint8Array | null = null) {
  const sent: Array<Buffer> = []
  let connections = 0
  let psks = new Map<string, Buffer>()
  const { address } = yield* listener(
    (on) => Tls.createServer({ ...suite, pskCallback: (_socket, identity) => psks.get(identity) ?? null }, on),
    (socket) => {
      connections++
      socket.on("data", (chunk: Buffer) => {
        sent.push(chunk)
        if (answer !== null) socket.write(answer)
      })
    }
  )
  psks = new Map(peerKeys(keys, address).map(({ identity, psk }) => [identity, psk]))
  return {
    address,
    /** What callers sent, in the clear. */
    sent: () => Buffer.concat(sent),
    connections: () => connections
  }
})
