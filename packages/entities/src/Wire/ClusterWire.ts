import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { Context, Effect, Layer, Queue, Schedule } from "effect"
import {
  type MessageStorage,
  RunnerHealth,
  Runners,
  RunnerServer,
  type RunnerStorage,
  type Sharding,
  type ShardingConfig
} from "effect/cluster"
import { NetAddress } from "effect/net"
import { RpcClient, RpcMessage, RpcSerialization, RpcServer } from "effect/rpc"
import { Socket, SocketServer } from "effect/socket"
import { constants, randomBytes } from "node:crypto"
import type { AddressInfo } from "node:net"
import * as Tls from "node:tls"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"
import * as Frames from "./Frames.ts"
import { Handshakes, type HandshakeLimits } from "./Handshakes.ts"
import { type PeerAddress, type PeerKey, peerKeys } from "./PeerKeys.ts"

/**
 * TLS 1.3 with a pre-shared key and a fresh key exchange. Both sides prove a key of the ring in the handshake. There are no
 * certificates, and a key that leaks later does not decrypt earlier recordings. (TLS 1.2's pre-shared-key suites with an
 * elliptic-curve key exchange have no AES-GCM.) The suite is the only AES suite that OpenSSL takes for such a key, which goes
 * with SHA-256. Session tickets are off: a ticket would still let a connection in after its key was removed from the ring.
 */
const suite = {
  minVersion: "TLSv1.3",
  maxVersion: "TLSv1.3",
  ciphers: "TLS_AES_128_GCM_SHA256",
  secureOptions: constants.SSL_OP_NO_TICKET,
  noDelay: true
} as const

/** Whether the finished handshake proved the key, and not a certificate that the peer offered instead. */
const provenByKey = (socket: Tls.TLSSocket): boolean => socket.isSessionReused()

const handshakeLimits: HandshakeLimits = { deadlineMs: 5_000, max: 256, maxPerAddress: 64 }

/**
 * How often a runner shows its callers that it lives. The library's caller pings every 5 s, closes a connection that received
 * nothing for that long, and sends its messages again. Without this beat, a message that takes longer than 5 s, with the ping
 * behind it, would never arrive.
 */
const beat = "2 seconds"
/**
 * Beats without a byte from a caller, which pings every 5 s, after which the caller counts as dead. Beats are counted instead of
 * time, so that a pause of this process does not count.
 */
const maxSilentBeats = 10
/**
 * When this process ends, a caller that does not read its answers is dropped after this shorter time (ms): it would keep the
 * process from ending.
 */
const endingSilenceMs = 1_000

/** The time for all handshakes of one attempt to reach a runner. */
const dialingTimeout = "2 seconds"
/** A runner that has come back, or whose port is flooded, is tried again soon: messages wait until it is found dead. */
const reconnecting = Schedule.spaced("250 millis")

const refusedLine = "the cluster's port refused a peer that has not proven a key of this installation"

/** Closes the connections of other processes faster when this process ends. */
class Peers extends Context.Service<Peers, { readonly hurry: Effect.Effect<void> }>()(
  "@tidegate/entities/Wire/ClusterWire/Peers"
) {}

/** The port where other processes reach this runner. It accepts only peers that have a key of the ring. */
const layerServer = (address: PeerAddress, keys: KeyRing) =>
  Layer.effectContext(
    Effect.gen(function* () {
      const fork = Effect.runForkWith(yield* Effect.context())
      const psks = new Map(peerKeys(keys, address).map(({ identity, psk }) => [identity, psk]))
      // An unknown identity gets a random key: so it fails at the same point and in the same way as a wrong key.
      const nobodys = randomBytes(32)
      const handshakes = new Handshakes(handshakeLimits, (refusals) => {
        fork(Effect.annotateLogs(Effect.logWarning(refusedLine), { ...refusals }))
      })
      const accepted = yield* Queue.unbounded<Tls.TLSSocket>()
      const open = new Set<Tls.TLSSocket>()
      let isEnding = false
      const alive = (yield* RpcSerialization.RpcSerialization).makeUnsafe().encode(RpcMessage.constPong)!

      const server = Tls.createServer({ ...suite, pskCallback: (_socket, identity) => psks.get(identity) ?? nobodys })
      server.on("connection", (raw) => handshakes.begin(raw))
      server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
        handshakes.fail(socket, error.code ?? error.message)
        socket.destroy()
      })
      server.on("secureConnection", (socket) => {
        // The end of the connection reports the cause.
        socket.on("error", () => {})
        if (!provenByKey(socket)) {
          handshakes.fail(socket, "not by key")
          socket.destroy()
          return
        }
        handshakes.succeed(socket)
        // Every message that waits for the socket to drain adds a listener.
        socket.setMaxListeners(0)
        if (isEnding) socket.setTimeout(endingSilenceMs)
        socket.on("timeout", () => {
          // An actor may still be about to answer.
          if (socket.writableLength === 0) socket.setTimeout(endingSilenceMs)
          else socket.destroy()
        })
        open.add(socket)
        socket.once("close", () => open.delete(socket))
        Queue.offerUnsafe(accepted, socket)
      })
      yield* Effect.acquireRelease(
        Effect.callback<void, SocketServer.SocketServerError>((resume) => {
          // Also for later errors, such as reaching limits of the system: the connection is lost, not the process.
          server.on("error", (cause) =>
            resume(
              Effect.fail(
                new SocketServer.SocketServerError({ reason: new SocketServer.SocketServerOpenError({ cause }) })
              )
            )
          )
          server.listen(address.port, address.host, () => resume(Effect.void))
        }),
        () =>
          Effect.callback<void>((resume) => {
            server.close(() => resume(Effect.void))
            handshakes.close()
            for (const socket of open) socket.destroySoon()
          })
      )

      const closed = new Socket.SocketError({ reason: new Socket.SocketCloseError({ code: 1000 }) })
      const watch = (socket: Tls.TLSSocket) => {
        let silentBeats = 0
        let read = 0
        return Effect.sync(() => {
          silentBeats = socket.bytesRead === read ? silentBeats + 1 : 0
          read = socket.bytesRead
          if (silentBeats > maxSilentBeats) socket.destroy()
          // Other data on its way shows that the runner lives as well.
          else if (socket.writable && socket.writableLength === 0) socket.write(alive)
        }).pipe(Effect.delay(beat), Effect.forever)
      }
      const serve = <R, E, A>(handler: (socket: Socket.Socket) => Effect.Effect<A, E, R>, socket: Tls.TLSSocket) =>
        Effect.suspend(() => (socket.destroyed ? Effect.fail(closed) : Effect.succeed(socket))).pipe(
          (open) => Effect.acquireRelease(open, (socket) => Effect.sync(() => socket.destroySoon())),
          Effect.tap((socket) => Effect.forkScoped(watch(socket))),
          (open) => NodeSocket.fromDuplex(open),
          Effect.flatMap(handler),
          // The peer connects again and repeats its messages.
          Effect.ignoreCause({ log: "Warn", message: "the connection of another process broke" })
        )

      const bound = server.address() as AddressInfo
      const hurry = Effect.sync(() => {
        isEnding = true
        for (const socket of open) socket.setTimeout(endingSilenceMs)
      })
      return Context.make(Peers, { hurry }).pipe(
        Context.add(SocketServer.SocketServer, {
          address: NetAddress.inetAddressFromIpStringUnsafe(bound.address, bound.port),
          run: (handler) =>
            Queue.take(accepted).pipe(
              Effect.flatMap((socket) => Effect.forkScoped(serve(handler, socket))),
              Effect.forever,
              Effect.scoped
            )
        })
      )
    })
  )

/** No connection was made. `refused`: something answered and did not accept the key. */
class NotConnected {
  readonly refused: boolean
  readonly cause: unknown
  constructor(refused: boolean, cause: unknown) {
    this.refused = refused
    this.cause = cause
  }
}

const dial = ({ host, port }: PeerAddress, key: PeerKey) =>
  Effect.callback<Tls.TLSSocket, NotConnected>((resume) => {
    let reached = false
    const socket = Tls.connect({ ...suite, host, port, rejectUnauthorized: true, pskCallback: () => key })
    const fail = (cause: unknown): void => {
      socket.destroy()
      resume(Effect.fail(new NotConnected(reached, cause)))
    }
    socket.setMaxListeners(0)
    socket.once("connect", () => (reached = true))
    socket.on("error", fail)
    socket.once("close", () => fail(new Error("closed")))
    socket.once("secureConnect", () =>
      provenByKey(socket) ? resume(Effect.succeed(socket)) : fail(new Error("not by key"))
    )
    return Effect.sync(() => socket.destroy())
  })

/**
 * Connects to the runner at `address` with the first key of the ring that it accepts, starting with the last accepted one. While
 * keys are rotated, processes have different rings. They share a key as long as a key is removed only after its successor is on
 * every process.
 */
const dialer = (address: PeerAddress, ring: KeyRing): Effect.Effect<Tls.TLSSocket, Socket.SocketError> => {
  const keys = peerKeys(ring, address)
  let first = 0
  const from = (tried: number): Effect.Effect<Tls.TLSSocket, NotConnected> => {
    const index = (first + tried) % keys.length
    return dial(address, keys[index]!).pipe(
      Effect.tap(() => Effect.sync(() => (first = index))),
      Effect.catchIf(
        ({ refused }) => refused && tried + 1 < keys.length,
        () => from(tried + 1)
      )
    )
  }
  return Effect.mapError(
    Effect.suspend(() => from(0)),
    ({ cause }) => new Socket.SocketError({ reason: new Socket.SocketOpenError({ kind: "Unknown", cause }) })
  )
}

/** Whether the runner at this address answers and proves a key of the ring. The connection is closed at once. */
export const tryToReach = (
  address: PeerAddress,
  ring: KeyRing
): Effect.Effect<"proven" | "refused" | "unreachable"> => {
  const keys = peerKeys(ring, address)
  const tried = Effect.forEach(keys, (key) =>
    dial(address, key).pipe(
      Effect.tap((socket) => Effect.sync(() => socket.destroy())),
      Effect.timeoutOrElse({
        duration: dialingTimeout,
        orElse: () => Effect.fail(new NotConnected(false, new Error("no answer in time")))
      }),
      Effect.match({
        onSuccess: () => "proven" as const,
        onFailure: ({ refused }) => (refused ? ("refused" as const) : ("unreachable" as const))
      })
    )
  )
  return Effect.map(tried, (found) =>
    found.includes("proven") ? "proven" : found.includes("refused") ? "refused" : "unreachable"
  )
}

/** The client protocol to the runners. */
const layerClientProtocol = (keys: KeyRing) =>
  Layer.effect(
    Runners.RpcClientProtocol,
    Effect.map(RpcSerialization.RpcSerialization, (serialization) => ({
      codecFor: serialization.codecFor,
      make: (address) => {
        const reach = dialer(address, keys)
        let current: Tls.TLSSocket | null = null
        const open = Effect.acquireRelease(reach, (socket) => Effect.sync(() => socket.destroySoon()), {
          interruptible: true
        }).pipe(Effect.tap((socket) => Effect.sync(() => (current = socket))))
        return Effect.flatMap(NodeSocket.fromDuplex(open, { openTimeout: dialingTimeout }), (socket) =>
          RpcClient.makeProtocolSocket({ retryPolicy: reconnecting }).pipe(
            Effect.provideService(Socket.Socket, socket),
            Effect.provideService(
              RpcSerialization.RpcSerialization,
              Frames.watched(serialization, (error) => current?.destroy(error as Error))
            )
          )
        )
      }
    }))
  )

type Stores = ShardingConfig.ShardingConfig | MessageStorage.MessageStorage | RunnerStorage.RunnerStorage

/** A process that holds shards: it reaches other runners, and they reach it at `address`. */
export const layerRunner = (
  address: PeerAddress,
  keys: KeyRing
): Layer.Layer<Sharding.Sharding, SocketServer.SocketServerError, Stores> =>
  Layer.effectDiscard(Effect.flatMap(Peers, ({ hurry }) => Effect.addFinalizer(() => hurry))).pipe(
    // Not the layer of effect's SocketRunner: it logs "Listening on" for this port, and people would take it for the gateway's
    // port.
    Layer.provideMerge(Layer.provide(RunnerServer.layerWithClients, RpcServer.layerProtocolSocketServer)),
    Layer.provide(Layer.provide(RunnerHealth.layerPing, Runners.layerRpc)),
    Layer.provide([layerServer(address, keys), layerClientProtocol(keys)]),
    Layer.provide(Frames.layer)
  )

/** A process that only reaches runners; it has no port. */
export const layerClient = (keys: KeyRing): Layer.Layer<Sharding.Sharding, never, Stores> =>
  RunnerServer.layerClientOnly.pipe(Layer.provide(layerClientProtocol(keys)), Layer.provide(Frames.layer))
