import type { IncomingMessage } from "node:http"
import type { WebSocket } from "@effect/platform-node/NodeWS"
import { Clock, Context, Effect, Layer } from "effect"
import { type GatewayError, statusOf } from "@tidegate/model/GatewayError"
import type { Admitted } from "./Admission.ts"
import { closeCodeOf, kind, later, Sockets } from "./Sockets.ts"
import { type Held, StreamSocket } from "./StreamSocket.ts"
import { frameOf, type Watcher, Watches } from "./Watches.ts"

/** Streams of one bin; and of one team, not counting those of strangers. */
export const maxPerBin = 32
export const maxPerTeam = 64

/** How often to check that a reader is alive and still has the right to read (ms). */
export const PingEveryMs = Context.Reference<number>("@tidegate/api/Streams/PingEveryMs", {
  defaultValue: () => 30_000
})
/** The time-out for the start of a stream. */
const patience = "15 seconds"

/** Nothing is expected from a reader: its largest frame is a close frame. */
const wire = { maxPayload: 1024, maxFragments: 4, maxBufferedChunks: 64 }

const alive = frameOf({ type: "alive" })

const over = { code: 4410, reason: "BIN_EXPIRED" }

/** The streams of this process. Their number, incoming frames, and waiting bytes are limited. */
export class Streams extends Context.Service<
  Streams,
  {
    /** Answers a handshake, and sends what is stored until the reader goes or loses the right to read. */
    readonly open: <R>(
      message: IncomingMessage,
      bin: string,
      admit: Effect.Effect<Admitted, GatewayError, R>,
      /** Completes when the reader's right has to be checked again at once. */
      changed?: Effect.Effect<void>
    ) => Effect.Effect<void, GatewayError, R>
  }
>()("@tidegate/api/Streams") {
  static readonly layer: Layer.Layer<Streams, never, Watches | Sockets> = Layer.effect(
    Streams,
    Effect.suspend(() => make)
  )
}

const make = Effect.gen(function* () {
  const watches = yield* Watches
  const pingEveryMs = yield* PingEveryMs
  const sockets = yield* Sockets
  const readers = kind(wire, "bin.v1")
  const held: Held = { bytes: 0 }

  /** Checks an open stream: whether its reader is alive and still has the right to read. */
  const attend = Effect.fnUntraced(function* <R>(
    stream: StreamSocket,
    { endsAt, team }: Admitted,
    admit: Effect.Effect<Admitted, GatewayError, R>,
    changed: Effect.Effect<void>
  ) {
    const again = Effect.gen(function* () {
      const isSooner = yield* Effect.raceFirst(Effect.as(Effect.sleep(pingEveryMs), false), Effect.as(changed, true))
      if (!isSooner) {
        stream.ping()
        // A browser does not show pings to its page: this message tells the page that the stream is alive.
        stream.send(alive)
      }
      const admitted = yield* Effect.result(admit)
      if (admitted._tag === "Success") {
        if (admitted.success.team !== team) stream.close(over.code, over.reason)
        return
      }
      // Fails open when the check is impossible: while the database does not answer, nothing is sent either.
      const code = closeCodeOf(admitted.failure)
      if (code !== null) stream.close(code, admitted.failure.code)
      // Only an invalid credential is counted: the stream is closed, without revealing what the credential was.
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

  /** Sends what is stored after the greeting: earlier records are in the list that the client reads after it. */
  const watcherOf = (stream: StreamSocket) => {
    let isGreeted = false
    const watcher: Watcher = {
      send: (frame) => {
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

  const serve =
    <R>(admit: Effect.Effect<Admitted, GatewayError, R>, changed: Effect.Effect<void>) =>
    (socket: WebSocket, admitted: Admitted) =>
      Effect.gen(function* () {
        const stream = new StreamSocket(socket, held)
        const { greet, watcher } = watcherOf(stream)
        yield* sockets.keep(stream)
        yield* Effect.addFinalizer(() => Effect.sync(() => watches.unwatch(admitted, watcher)))
        const hasBegun = yield* Effect.timeoutOption(watches.watch(admitted, watcher), patience)
        if (hasBegun._tag === "None") stream.close(later.code, later.reason)
        else {
          greet(admitted.source)
          yield* attend(stream, admitted, admit, changed)
        }
      })

  return Streams.of({
    open: (message, bin, admit, changed = Effect.never) =>
      sockets.open({
        message,
        kind: readers,
        admit,
        limits: ({ isStranger, team }) => ({
          [`bin ${bin}`]: maxPerBin,
          ...(isStranger ? {} : { [`streams ${team}`]: maxPerTeam })
        }),
        serve: serve(admit, changed)
      })
  })
})
