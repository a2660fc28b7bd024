import type { IncomingMessage } from "node:http"
import { type ServerOptions, type WebSocket, WebSocketServer } from "@effect/platform-node/NodeWS"
import { Context, Effect, Layer, Result, type Scope } from "effect"
import { clientOf } from "@tidegate/model/ClientAddress"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { metrics } from "@tidegate/telemetry/Metrics"
import { echoed } from "./StreamCredentials.ts"

/** Limits of WebSockets: of this process; and of one client address with credentials, which may be a proxy with many clients. */
export const maxSockets = 512
export const maxPerAddress = 128
/**
 * Limits of strangers, who have only a public bin's token; and of handshakes that are not admitted yet, or refused. Together they
 * take at most half of all WebSockets, counted separately: the other half stays for callers with credentials.
 */
export const maxOfStrangers = maxSockets / 4
export const maxStrangersPerAddress = 64
const maxAsking = maxSockets / 4
const maxAskingPerAddress = 64

/** How long a client may take to confirm the close. */
const closeMs = 2_000

const restarting = { code: 1012, reason: "the gateway restarts; connect again" }
/** Tells a client that it may try again. */
export const later = { code: 1013, reason: "try again later" }

/** The close code for an error, for clients that do not see the HTTP status. */
export const closeCodeOf = ({ code }: GatewayError): number | null => {
  const status = statusOf[code]
  return [401, 403, 404, 410].includes(status) ? 4000 + status : null
}

const everybody = "all"
/** Limits that no single client can exhaust. */
const shared: ReadonlySet<string> = new Set([everybody, "strangers", "asking"])

/** Counts the open WebSockets for each limit. */
class OpenCounts {
  readonly #open = new Map<string, number>()

  of(key: string): number {
    return this.#open.get(key) ?? 0
  }

  take(keys: ReadonlyArray<string>): void {
    for (const key of keys) this.#open.set(key, this.of(key) + 1)
  }

  release(keys: ReadonlyArray<string>): void {
    for (const key of keys) {
      const left = this.of(key) - 1
      if (left === 0) this.#open.delete(key)
      else this.#open.set(key, left)
    }
  }
}

/** A connection that can be ended from outside. */
interface Endable {
  /** Sends the reason; a client that does not confirm is cut off. */
  readonly close: (code: number, reason: string) => void
  readonly drop: () => void
}

/** One kind of WebSockets: how handshakes are answered, and the limits of incoming frames. */
export type Kind = WebSocketServer

/** An admitted client. */
interface Guest {
  /** Whether it has no credential of a user or team. */
  readonly isStranger: boolean
}

/** No compression, for any client. */
const bare = { perMessageDeflate: false, closeTimeout: closeMs, noServer: true, clientTracking: false }

/** `protocol`: the subprotocol that it speaks. */
export const kind = (
  wire: Pick<ServerOptions, "maxPayload" | "maxFragments" | "maxBufferedChunks">,
  protocol: string
): Kind =>
  new WebSocketServer({
    ...bare,
    ...wire,
    handleProtocols: (offered) => echoed(offered, protocol) ?? false
  })

/** A handshake, and what it is for. */
export interface Handshake<A extends Guest, R> {
  readonly message: IncomingMessage
  readonly kind: Kind
  /** Checks the caller's right to it. */
  readonly admit: Effect.Effect<A, GatewayError, R>
  /** Further limits beside sockets and addresses: name and number. */
  readonly limits: (admitted: A) => Readonly<Record<string, number>>
  /** Serves the WebSocket. When this ends the WebSocket is closed, and when the client goes this is interrupted. */
  readonly serve: (socket: WebSocket, admitted: A) => Effect.Effect<void, GatewayError, R | Scope.Scope>
}

/**
 * The WebSockets of this process. It uses `ws` directly, because `HttpServerRequest.upgrade` does not show how far a reader is
 * behind, or whether it is alive. Browsers may connect from any origin, because no cookie gives access: a page has to know a
 * credential.
 */
export class Sockets extends Context.Service<
  Sockets,
  {
    /**
     * Answers a handshake, and completes when the WebSocket has ended. A caller without the right gets a close code; a failure
     * for another reason is answered with an HTTP status.
     */
    readonly open: <A extends Guest, R>(
      handshake: Handshake<A, R>
    ) => Effect.Effect<void, GatewayError, Exclude<R, Scope.Scope>>
    /** Registers a connection for as long as the scope lives; it is closed when the process ends. */
    readonly keep: (socket: Endable) => Effect.Effect<void, never, Scope.Scope>
    /** Closes all WebSockets, and admits no further ones. */
    readonly drain: Effect.Effect<void>
  }
>()("@tidegate/api/Sockets") {
  static readonly layer: Layer.Layer<Sockets> = Layer.effect(
    Sockets,
    Effect.map(TrustedProxies.Current, (proxies) => make(proxies))
  )

  /** Closes the WebSockets before their server waits for them: this layer is built after the server's. */
  static readonly layerDraining: Layer.Layer<never, never, Sockets> = Layer.effectDiscard(
    Effect.flatMap(Sockets, ({ drain }) => Effect.addFinalizer(() => drain))
  )
}

const limitsOf = ({ isStranger }: Guest, address: string): Readonly<Record<string, number>> =>
  isStranger
    ? { strangers: maxOfStrangers, [`strangers ${address}`]: maxStrangersPerAddress }
    : { [`address ${address}`]: maxPerAddress }

/** Completes when the WebSocket has ended. */
const closed = (socket: WebSocket): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (socket.readyState === 3) return resume(Effect.void)
    socket.once("close", () => resume(Effect.void))
  })

const make = (proxies: TrustedProxies): Sockets["Service"] => {
  const counts = new OpenCounts()
  const open = new Set<Endable>()
  let isDraining = false

  /** Reserves one of each limit until the scope ends. */
  const reserve = (keys: Readonly<Record<string, number>>) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if (isDraining) return fail("QUEUE_UNAVAILABLE", restarting.reason)
        const taken = Object.entries(keys).find(([key, max]) => counts.of(key) >= max)
        if (taken !== undefined) {
          return shared.has(taken[0])
            ? fail("QUEUE_UNAVAILABLE", "too many streams are open here")
            : fail("RATE_LIMITED", "too many streams are open from this address, or of this kind and team")
        }
        counts.take(Object.keys(keys))
        metrics.streams.set(counts.of(everybody))
        return Effect.void
      }),
      () =>
        Effect.sync(() => {
          counts.release(Object.keys(keys))
          metrics.streams.set(counts.of(everybody))
        })
    )

  /** Answers the handshake; null: its client has gone. The WebSocket ends with the scope, whatever the reason. */
  const shakeHands = (kind: Kind, message: IncomingMessage) =>
    Effect.acquireRelease(
      Effect.callback<WebSocket | null>((resume) => {
        if (message.socket.destroyed) return resume(Effect.succeed(null))
        message.socket.once("close", () => resume(Effect.succeed(null)))
        // What a client sends before the answer is dropped: nothing is expected from it yet.
        kind.handleUpgrade(message, message.socket, Buffer.alloc(0), (socket) => {
          // A protocol error ends the connection; nobody has to be notified.
          socket.on("error", () => {})
          resume(Effect.succeed(socket))
        })
      }),
      (socket) => Effect.sync(() => socket?.terminate())
    )

  const keep = (socket: Endable) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        open.add(socket)
        // It was admitted while the others were being closed.
        if (isDraining) socket.close(restarting.code, restarting.reason)
      }),
      () => Effect.sync(() => void open.delete(socket))
    )

  return Sockets.of({
    keep,
    open: ({ admit, kind, message, limits: named, serve }) =>
      Effect.gen(function* () {
        const address = clientOf(proxies.clientOf(message.socket.remoteAddress, message.headers) ?? "")
        const asking = reserve({ asking: maxAsking, [`asking ${address}`]: maxAskingPerAddress })
        yield* reserve({ [everybody]: maxSockets })
        const admitted = yield* Effect.scoped(Effect.andThen(asking, Effect.result(admit)))
        if (admitted._tag === "Failure" && closeCodeOf(admitted.failure) === null) yield* admitted.failure
        // Refused handshakes must not use up the limits of admitted ones.
        if (admitted._tag === "Failure") yield* asking
        else yield* reserve({ ...limitsOf(admitted.success, address), ...named(admitted.success) })
        const socket = yield* shakeHands(kind, message)
        if (socket === null) return
        if (Result.isSuccess(admitted)) {
          yield* Effect.raceFirst(closed(socket), Effect.andThen(serve(socket, admitted.success), closed(socket)))
        } else {
          // No messages are expected: a client that sends one is disconnected.
          socket.on("message", () => socket.terminate())
          socket.close(closeCodeOf(admitted.failure)!, admitted.failure.code)
          yield* closed(socket)
        }
      }).pipe(Effect.scoped),
    drain: Effect.gen(function* () {
      isDraining = true
      for (const socket of open) socket.close(restarting.code, restarting.reason)
      for (let waited = 0; open.size > 0 && waited < closeMs; waited += 50) yield* Effect.sleep(50)
      for (const socket of open) socket.drop()
    })
  })
}
