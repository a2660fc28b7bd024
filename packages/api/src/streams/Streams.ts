import type { IncomingMessage } from "node:http"
import { type WebSocket, WebSocketServer } from "@effect/platform-node/NodeWS"
import { Clock, Context, Effect, Layer, Result } from "effect"
import { clientOf } from "@tidegate/model/ClientAddress"
import { fail, type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import { metrics } from "@tidegate/telemetry/Metrics"
import type { Admitted } from "./Admission.ts"
import { echoed } from "./StreamCredentials.ts"
import { type Held, StreamSocket } from "./StreamSocket.ts"
import { frameOf, type Watcher, Watches } from "./Watches.ts"

/** Streams of this process; of one client address, behind which may be a proxy and many clients; and of one bin. */
export const mostStreams = 512
export const mostPerAddress = 128
export const mostPerBin = 32

/** How often it is looked whether a reader lives, and may still see what it is told (ms). */
export const PingEveryMs = Context.Reference<number>("@tidegate/api/Streams/PingEveryMs", {
  defaultValue: () => 30_000
})

/** How long a reader may take to answer that it is over. */
const closeMs = 2_000
/** How long it may take to begin. */
const patience = "15 seconds"

/** Nothing is expected from a reader: its largest frame is one that closes, and nothing is decompressed for it. */
const wire = {
  maxPayload: 1024,
  maxFragments: 4,
  maxBufferedChunks: 64,
  perMessageDeflate: false,
  closeTimeout: closeMs
}

/** What a browser is told by, which sees no status. */
const closeCodeOf = ({ code }: GatewayError): number | null => {
  const status = statusOf[code]
  return [401, 403, 404, 410].includes(status) ? 4000 + status : null
}

const over = { code: 4410, reason: "BIN_EXPIRED" }
const restarting = { code: 1012, reason: "the gateway restarts; connect again" }
const later = { code: 1013, reason: "try again later" }

const everybody = "all"

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

/**
 * The WebSocket streams of this process. `ws` is used itself: what is given of it by `HttpServerRequest.upgrade` tells neither how far behind
 * a reader is nor whether it lives. Bounded: streams, frames that come, and bytes that a reader is behind. A browser may come from any
 * origin, because nothing of a browser's own lets it in: its page has to know a credential.
 */
export class Streams extends Context.Service<
  Streams,
  {
    /**
     * Answers a handshake, and tells what is stored until the reader goes or may not see it any more. Who may not is told by the
     * code that the stream is closed with; what has nothing to do with the caller's right fails, and is answered by a status.
     */
    readonly open: <R>(
      message: IncomingMessage,
      bin: string,
      admit: Effect.Effect<Admitted, GatewayError, R>
    ) => Effect.Effect<void, GatewayError, R>
    /** Ends all, and lets nobody in any more. */
    readonly drain: Effect.Effect<void>
  }
>()("@tidegate/api/Streams") {
  static readonly layer: Layer.Layer<Streams, never, Watches> = Layer.effect(
    Streams,
    Effect.suspend(() => make)
  )

  /** Ends the streams before the server that they are on waits for them: it is built behind the server. */
  static readonly layerDraining: Layer.Layer<never, never, Streams> = Layer.effectDiscard(
    Effect.flatMap(Streams, ({ drain }) => Effect.addFinalizer(() => drain))
  )
}

const make = Effect.gen(function* () {
  const watches = yield* Watches
  const pingEveryMs = yield* PingEveryMs
  const server = new WebSocketServer({
    ...wire,
    noServer: true,
    clientTracking: false,
    handleProtocols: (offered) => echoed(offered) ?? false
  })
  const held: Held = { bytes: 0 }
  const places = new Places()
  const open = new Set<StreamSocket>()
  let isDraining = false

  /** A place for one more, until the scope ends. */
  const place = (keys: Readonly<Record<string, number>>) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        if (isDraining) return fail("QUEUE_UNAVAILABLE", "the gateway restarts; connect again")
        const taken = Object.entries(keys).find(([key, most]) => places.of(key) >= most)
        if (taken !== undefined) {
          return taken[0] === everybody
            ? fail("QUEUE_UNAVAILABLE", "too many streams are open here")
            : fail("RATE_LIMITED", "too many streams are open from this address, or of this bin")
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
  const shakeHands = (message: IncomingMessage) =>
    Effect.acquireRelease(
      Effect.callback<WebSocket | null>((resume) => {
        if (message.socket.destroyed) return resume(Effect.succeed(null))
        message.socket.once("close", () => resume(Effect.succeed(null)))
        // What a client says before it is answered is not kept: it has nothing to say.
        server.handleUpgrade(message, message.socket, Buffer.alloc(0), (socket) => resume(Effect.succeed(socket)))
      }),
      (socket) => Effect.sync(() => socket?.terminate())
    )

  const closed = (socket: WebSocket): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      if (socket.readyState === 3) return resume(Effect.void)
      socket.once("close", () => resume(Effect.void))
    })

  /** Looks after an open stream: whether its reader lives, and may still see what it is told. */
  const attend = Effect.fnUntraced(function* <R>(
    stream: StreamSocket,
    { endsAt, ...source }: Admitted,
    admit: Effect.Effect<Admitted, GatewayError, R>
  ) {
    const again = Effect.gen(function* () {
      yield* Effect.sleep(pingEveryMs)
      stream.ping()
      const admitted = yield* Effect.result(admit)
      if (admitted._tag === "Success") {
        if (admitted.success.team !== source.team) stream.close(over.code, over.reason)
        return
      }
      // Fails open when it cannot be asked: while the database does not answer, nothing is told either.
      const code = closeCodeOf(admitted.failure)
      if (code !== null) stream.close(code, admitted.failure.code)
      // Only a credential that is none any more is counted: closed, though what it was cannot be told.
      else if (statusOf[admitted.failure.code] === 429) stream.close(later.code, later.reason)
    })
    const end =
      endsAt === null
        ? Effect.never
        : Effect.gen(function* () {
            yield* Effect.sleep(Math.max(0, endsAt - (yield* Clock.currentTimeMillis)))
            stream.close(over.code, over.reason)
          })
    yield* Effect.all([Effect.forever(again), end], { concurrency: "unbounded", discard: true })
  })

  /** Tells what is stored, from the greeting on: what is told before is in the list that is read after it. */
  const watcherOf = (stream: StreamSocket) => {
    let isGreeted = false
    const watcher: Watcher = {
      tell: (frame) => {
        if (isGreeted) stream.send(frame)
      },
      gone: () => stream.close(over.code, over.reason)
    }
    const greet = (bin: string): void => {
      isGreeted = true
      stream.send(frameOf({ type: "hello", bin_id: bin }))
    }
    return { watcher, greet }
  }

  const serve = Effect.fnUntraced(function* <R>(
    socket: WebSocket,
    stream: StreamSocket,
    admitted: Admitted,
    admit: Effect.Effect<Admitted, GatewayError, R>
  ) {
    const { greet, watcher } = watcherOf(stream)
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        open.add(stream)
        // Let in while the others were told to go.
        if (isDraining) stream.close(restarting.code, restarting.reason)
      }),
      () =>
        Effect.sync(() => {
          open.delete(stream)
          watches.unwatch(admitted, watcher)
        })
    )
    const begin = Effect.gen(function* () {
      const hasBegun = yield* Effect.timeoutOption(watches.watch(admitted, watcher), patience)
      if (hasBegun._tag === "None") stream.close(later.code, later.reason)
      else {
        greet(admitted.source)
        yield* attend(stream, admitted, admit)
      }
    })
    yield* Effect.raceFirst(closed(socket), Effect.andThen(begin, closed(socket)))
  })

  /** What becomes of a handshake that was answered: a stream, or why it is none. */
  const attended = <R>(
    socket: WebSocket,
    admitted: Result.Result<Admitted, GatewayError>,
    admit: Effect.Effect<Admitted, GatewayError, R>
  ) => {
    const stream = new StreamSocket(socket, held)
    if (Result.isSuccess(admitted)) return serve(socket, stream, admitted.success, admit)
    stream.close(closeCodeOf(admitted.failure)!, admitted.failure.code)
    return closed(socket)
  }

  return Streams.of({
    open: (message, bin, admit) =>
      Effect.gen(function* () {
        const address = clientOf(message.socket.remoteAddress ?? "")
        yield* place({ [everybody]: mostStreams, [`address ${address}`]: mostPerAddress })
        const admitted = yield* Effect.result(admit)
        if (admitted._tag === "Failure" && closeCodeOf(admitted.failure) === null) yield* admitted.failure
        // Whoever may not watch it takes no place of those who may.
        if (admitted._tag === "Success") yield* place({ [`bin ${bin}`]: mostPerBin })
        const socket = yield* shakeHands(message)
        if (socket !== null) yield* attended(socket, admitted, admit)
      }).pipe(Effect.scoped),
    drain: Effect.gen(function* () {
      isDraining = true
      for (const stream of open) stream.close(restarting.code, restarting.reason)
      for (let waited = 0; open.size > 0 && waited < closeMs; waited += 50) yield* Effect.sleep(50)
      for (const stream of open) stream.drop()
    })
  })
})
