import type { IncomingMessage } from "node:http"
import { type ServerOptions, type WebSocket, WebSocketServer } from "@effect/platform-node/NodeWS"
import { Context, Effect, Layer, Result, type Scope } from "effect"
import { clientOf } from "@tidegate/model/ClientAddress"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { TrustedProxies } from "@tidegate/model/TrustedProxies"
import { metrics } from "@tidegate/telemetry/Metrics"
import { echoed } from "./StreamCredentials.ts"

/** WebSockets of this process; and of one client address, behind which may be a proxy and many clients, with credentials. */
export const maxSockets = 512
export const maxPerAddress = 128
/**
 * Those of strangers, who have no credential but a public bin's token; and handshakes that are not let in yet, or not at all. Together
 * they hold half of all places at the most, in a count of their own: the other half stays for those with credentials.
 */
export const maxOfStrangers = maxSockets / 4
export const maxStrangersPerAddress = 64
const maxAsking = maxSockets / 4
const maxAskingPerAddress = 64

/** How long a client may take to answer that it is over. */
const closeMs = 2_000

const restarting = { code: 1012, reason: "the gateway restarts; connect again" }
/** What a client is told that may come back. */
export const later = { code: 1013, reason: "try again later" }

/** What a client is told by, whether or not it sees a status. */
export const closeCodeOf = ({ code }: GatewayError): number | null => {
  const status = statusOf[code]
  return [401, 403, 404, 410].includes(status) ? 4000 + status : null
}

const everybody = "all"
/** What no single client can have used up. */
const shared: ReadonlySet<string> = new Set([everybody, "strangers", "asking"])

/** What is open, counted by what it is bounded by. */
class Places {
  readonly #open = new Map<string, number>()

  of(key: string): number {
    return this.#open.get(key) ?? 0
  }

  take(keys: ReadonlyArray<string>): void {
    for (const key of keys) this.#open.set(key, this.of(key) + 1)
  }

  give(keys: ReadonlyArray<string>): void {
    for (const key of keys) {
      const left = this.of(key) - 1
      if (left === 0) this.#open.delete(key)
      else this.#open.set(key, left)
    }
  }
}

/** What can be ended from outside. */
interface Endable {
  /** Says why; a client who does not answer that is cut off. */
  readonly close: (code: number, reason: string) => void
  readonly drop: () => void
}

/** One kind of WebSockets: how its handshakes are answered, and what comes over them is bounded by. */
export type Kind = WebSocketServer

/** Who was let in. */
interface Guest {
  /** Whether without a credential of somebody's. */
  readonly isStranger: boolean
}

/** Nothing is decompressed for anybody. */
const bare = { perMessageDeflate: false, closeTimeout: closeMs, noServer: true, clientTracking: false }

/** `protocol`: the one that it speaks. */
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
  /** Who asks, and for what. */
  readonly admit: Effect.Effect<A, GatewayError, R>
  /** What is bounded beside sockets and addresses, by name, and to how many. */
  readonly places: (admitted: A) => Readonly<Record<string, number>>
  /** What becomes of it; when this ends, or the client goes, so does the other. */
  readonly serve: (socket: WebSocket, admitted: A) => Effect.Effect<void, GatewayError, R | Scope.Scope>
}

/**
 * The WebSockets of this process. `ws` is used itself: what is given of it by `HttpServerRequest.upgrade` tells neither how far behind
 * a reader is nor whether it lives. A browser may come from any origin, because nothing of a browser's own lets it in: its page has to know
 * a credential.
 */
export class Sockets extends Context.Service<
  Sockets,
  {
    /**
     * Answers a handshake, and completes when the WebSocket is over. Who may not have it is told by the code that it is closed with;
     * what has nothing to do with the caller's right fails, and is answered by a status.
     */
    readonly open: <A extends Guest, R>(
      handshake: Handshake<A, R>
    ) => Effect.Effect<void, GatewayError, Exclude<R, Scope.Scope>>
    /** Has it ended when the process is to end, until the scope does. */
    readonly keep: (socket: Endable) => Effect.Effect<void, never, Scope.Scope>
    /** Ends all, and lets nobody in any more. */
    readonly drain: Effect.Effect<void>
  }
>()("@tidegate/api/Sockets") {
  static readonly layer: Layer.Layer<Sockets> = Layer.effect(
    Sockets,
    Effect.map(TrustedProxies.Current, (proxies) => make(proxies))
  )

  /** Ends them before the server that they are on waits for them: it is built behind the server. */
  static readonly layerDraining: Layer.Layer<never, never, Sockets> = Layer.effectDiscard(
    Effect.flatMap(Sockets, ({ drain }) => Effect.addFinalizer(() => drain))
  )
}

const placesOf = ({ isStranger }: Guest, address: string): Readonly<Record<string, number>> =>
  isStranger
    ? { strangers: maxOfStrangers, [`strangers ${address}`]: maxStrangersPerAddress }
    : { [`address ${address}`]: maxPerAddress }

/** Completes when it is over. */
const closed = (socket: WebSocket): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (socket.readyState === 3) return resume(Effect.void)
    socket.once("close", () => resume(Effect.void))
  })

const make = (proxies: TrustedProxies): Sockets["Service"] => {
  const places = new Places()
  const open = new Set<Endable>()
  let isDraining = false

  /** A place for one more, until the scope ends. */
  const place = (keys: Readonly<Record<string, number>>) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if (isDraining) return fail("QUEUE_UNAVAILABLE", restarting.reason)
        const taken = Object.entries(keys).find(([key, most]) => places.of(key) >= most)
        if (taken !== undefined) {
          return shared.has(taken[0])
            ? fail("QUEUE_UNAVAILABLE", "too many streams are open here")
            : fail("RATE_LIMITED", "too many streams are open from this address, or of this kind and team")
        }
        places.take(Object.keys(keys))
        metrics.streams.set(places.of(everybody))
        return Effect.void
      }),
      () =>
        Effect.sync(() => {
          places.give(Object.keys(keys))
          metrics.streams.set(places.of(everybody))
        })
    )

  /** Answers the handshake; null: its client has gone. A WebSocket ends with the scope, whatever the reason. */
  const shakeHands = (kind: Kind, message: IncomingMessage) =>
    Effect.acquireRelease(
      Effect.callback<WebSocket | null>((resume) => {
        if (message.socket.destroyed) return resume(Effect.succeed(null))
        message.socket.once("close", () => resume(Effect.succeed(null)))
        // What a client says before it is answered is not kept: it has nothing to say yet.
        kind.handleUpgrade(message, message.socket, Buffer.alloc(0), (socket) => {
          // What is wrong on the wire ends the connection; there is nobody to tell.
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
        // Let in while the others were told to go.
        if (isDraining) socket.close(restarting.code, restarting.reason)
      }),
      () => Effect.sync(() => void open.delete(socket))
    )

  return Sockets.of({
    keep,
    open: ({ admit, kind, message, places: named, serve }) =>
      Effect.gen(function* () {
        const address = clientOf(proxies.clientOf(message.socket.remoteAddress, message.headers) ?? "")
        const asking = place({ asking: maxAsking, [`asking ${address}`]: maxAskingPerAddress })
        yield* place({ [everybody]: maxSockets })
        const admitted = yield* Effect.scoped(Effect.andThen(asking, Effect.result(admit)))
        if (admitted._tag === "Failure" && closeCodeOf(admitted.failure) === null) yield* admitted.failure
        // Whoever may not have it takes no place of those who may.
        if (admitted._tag === "Failure") yield* asking
        else yield* place({ ...placesOf(admitted.success, address), ...named(admitted.success) })
        const socket = yield* shakeHands(kind, message)
        if (socket === null) return
        if (Result.isSuccess(admitted)) {
          yield* Effect.raceFirst(closed(socket), Effect.andThen(serve(socket, admitted.success), closed(socket)))
        } else {
          // Nothing is expected to be said: whoever says something is let go.
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
