import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Redacted, Scope, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { cancelled, SessionFailure } from "@tidegate/connectors/Failure"
import { type Insert, SqlRefusal, SqlServers, type SqlTable } from "@tidegate/connectors/SqlServers"
import { errorCodeOf, errorMessageOf } from "@tidegate/egress/AttemptErrorCode"
import { Egress, type Guard } from "@tidegate/egress/Egress"
import { type Idle, Places } from "./Places.ts"
import { PostgresStream } from "./PostgresStream.ts"
import { FatalRefusal, ServerFault, stateOf } from "./ServerFrames.ts"

/** Default number of connections of a process to external databases. */
const usualMost = 256

/** How long a send waits for a permit: less than the timeout of a send, so that the failure names the missing permit. */
const patience = "20 seconds"

/** Nothing was sent, and the failure says nothing about the server. */
const noPlace = new SessionFailure({
  code: "INTERNAL_ERROR",
  message: "the gateway has too many connections to databases: none was free for this one",
  final: false,
  broken: false,
  unsent: true
})

/** A pooler in front of the server has fewer server connections than were opened. Nothing was sent, and other connections can send it. */
const fewerLeft = new SessionFailure({
  code: "TIMEOUT",
  message: "a pooler in front of the server has no connection left for one more",
  final: false,
  broken: false,
  unsent: true
})

/** Default time (ms) for which a destination opens no more connections than its pooler had. Then it tries more. */
const usualFewerMs = 300_000

/** A connection that is signed in, and over which the server itself (not only a pooler) has answered. */
interface Connection extends Idle {
  readonly insert: (rows: ReadonlyArray<ReadonlyArray<string>>) => Effect.Effect<number, SqlRefusal | SessionFailure>
  /** Whether it can be used again. */
  readonly isOpen: () => boolean
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The only statement. Names are quoted and values are bound; the server sets its own time. */
export const statementOf = ({ columns, schema, table, timed, unique }: SqlTable, rows: number): string => {
  const names = [...columns, ...timed].map(quoted).join(", ")
  const values = Array.from({ length: rows }, (_, row) => {
    const bound = columns.map((_, i) => `$${row * columns.length + i + 1}`)
    return `(${[...bound, ...timed.map(() => "now()")].join(", ")})`
  })
  const conflict = unique === null ? "" : ` on conflict (${quoted(unique)}) do nothing`
  return `insert into ${quoted(schema)}.${quoted(table)} (${names}) values ${values.join(", ")}${conflict}`
}

const notSignedIn =
  "not connected and signed in within config.connect_timeout: a pooler in front of the server that has no connection left " +
  "keeps others waiting; config.max_concurrency says how many are opened"

/** A pooler accepted the sign-in, but does not answer. */
const notServed = new SessionFailure({ code: "TIMEOUT", message: notSignedIn, final: false, broken: true })

/** The failure, from the error that ended the stream, or from the server's answer. */
const failureOf = ({ reason }: SqlError.SqlError, stream: PostgresStream): SqlRefusal | SessionFailure => {
  const cause = stream.errored ?? reason.cause
  if (cause instanceof FatalRefusal) return new SqlRefusal({ state: cause.state, said: cause.said, fatal: true })
  const broken = { final: false, broken: true }
  if (cause instanceof ServerFault) return new SessionFailure({ code: cause.code, message: cause.message, ...broken })
  if (!(cause instanceof Error)) return new SessionFailure({ code: "UNKNOWN", message: "no answer", ...broken })
  if ("severity" in cause && "code" in cause) {
    return new SqlRefusal({ state: stateOf(cause.code), said: cause.message, fatal: false })
  }
  if (stream.errored !== null) {
    return new SessionFailure({ code: errorCodeOf(cause), message: errorMessageOf(cause), ...broken })
  }
  const [code, message] =
    reason._tag === "AuthenticationError"
      ? (["AUTH_REJECTED", "the server's way to sign in is not known, or it cannot prove who it is"] as const)
      : cause.message === "Connection timed out"
        ? (["TIMEOUT", notSignedIn] as const)
        : /^Connection (?:closed|is closed)/.test(cause.message)
          ? (["SOCKET_CLOSED", "the server has hung up"] as const)
          : (["PROTOCOL_ERROR", "the server does not keep to the protocol"] as const)
  return new SessionFailure({ code, message, ...broken })
}

/** Connects and signs in; the connection closes with the scope. */
const connect = Effect.fnUntraced(function* (guard: Guard, table: SqlTable) {
  const streams: Array<PostgresStream> = []
  const session = yield* make({
    // Further streams are opened only to cancel a statement.
    stream: () => {
      const stream = new PostgresStream(guard, table)
      if (streams.length === 0) streams.push(stream)
      return stream
    },
    // The stream itself starts TLS.
    ssl: false,
    database: table.database,
    username: table.username,
    password: Redacted.make(table.password),
    connectTimeout: Duration.seconds(table.connectTimeout),
    applicationName: "tidegate"
  }).pipe(Effect.mapError((error) => failureOf(error, streams[0]!)))
  return { session, stream: streams[0]! }
})

/** Whether a connection can be used again after a failure. */
const isUnharmed = (exit: Exit.Exit<number, SqlRefusal | SessionFailure>): boolean => {
  const [reason, ...more] = Exit.isFailure(exit) ? exit.cause.reasons : []
  if (more.length > 0 || reason?._tag !== "Fail") return false
  return reason.error._tag === "SqlRefusal" || reason.error === cancelled
}

/** Inserts rows over the connections of one destination, which close with the scope. */
const open = Effect.fnUntraced(function* (
  guard: Guard,
  places: Places<Connection>,
  fewerMs: number,
  table: SqlTable
): Effect.fn.Return<Insert, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const single = statementOf(table, 1)
  /** The most recently used one is used next. */
  const idle: Array<Connection> = []

  const share = places.share()
  const place = places
    .take(share)
    .pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(noPlace) }))

  // An interrupted caller keeps its permit until its statement is cancelled, and its connection is not used again.
  const turns = Semaphore.makeUnsafe(table.connections)
  let open = 0
  let fewerUntil = 0
  /**
   * A pooler in session mode binds a server connection to each client. It accepts more clients than it has server connections, and answers
   * the surplus ones only after another client disconnects. Here connections stay in use, so that may never happen.
   */
  const fewer = Effect.gen(function* () {
    if (open === 0) return yield* notServed
    fewerUntil = (yield* Clock.currentTimeMillis) + fewerMs
    yield* turns.resize(open)
    return yield* fewerLeft
  })
  const asManyAgain = Effect.gen(function* () {
    if (fewerUntil === 0 || fewerUntil > (yield* Clock.currentTimeMillis)) return
    fewerUntil = 0
    yield* turns.resize(table.connections)
  })

  /** Sends an empty query, to learn whether a server answers behind a pooler that accepted the sign-in. */
  const proved = Effect.fnUntraced(function* (session: PgConnection, stream: PostgresStream) {
    let isLate = false
    const late = Effect.sync(() => {
      isLate = true
      // The stream is destroyed: cancelling a statement that no server has begun would wait for the pooler again.
      stream.destroy()
    })
    const timer = yield* Effect.forkChild(Effect.delay(late, Duration.seconds(table.connectTimeout)))
    yield* session
      .query("", [], false)
      .pipe(
        Effect.catch((error): Effect.Effect<unknown, SessionFailure | SqlRefusal> =>
          isLate ? fewer : Effect.fail(failureOf(error, stream))
        )
      )
    yield* Fiber.interrupt(timer)
  })

  const opened = Effect.gen(function* () {
    const own = yield* Scope.fork(scope)
    const close = Scope.close(own, Exit.void)
    return yield* Effect.gen(function* () {
      const handed = yield* place
      if (handed !== null) {
        yield* close
        return handed
      }
      const { session, stream } = yield* connect(guard, table)
      yield* proved(session, stream)
      open++
      const connection: Connection = {
        // Not prepared: poolers that share server connections do not support named statements.
        insert: (rows) =>
          session.query(rows.length === 1 ? single : statementOf(table, rows.length), rows.flat(), false).pipe(
            Effect.map(({ rowCount }) => rowCount),
            Effect.mapError((error) => failureOf(error, stream))
          ),
        isOpen: () => !stream.destroyed,
        leave: () => {
          const at = idle.indexOf(connection)
          if (at !== -1) idle.splice(at, 1)
        },
        close
      }
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          open--
          places.busy(connection)
          connection.leave()
        })
      )
      return connection
    }).pipe(
      Scope.provide(own),
      Effect.onExit((exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(own, exit)))
    )
  })

  const taken: typeof opened = Effect.suspend(() => {
    const connection = idle.pop()
    if (connection === undefined) return opened
    places.busy(connection)
    // The server has closed the connection meanwhile.
    return connection.isOpen() ? Effect.succeed(connection) : Effect.andThen(connection.close, taken)
  })

  const given = (connection: Connection): Effect.Effect<void> =>
    Effect.suspend(() => {
      const next = connection.isOpen() ? places.idle(share, connection) : "close"
      if (next === "idle") idle.push(connection)
      return next === "close" ? connection.close : Effect.void
    })

  return (rows, mayStart) =>
    Effect.andThen(
      asManyAgain,
      turns.withPermit(
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(restore(taken), (connection) =>
            // Checked again, because getting a connection may have taken longer than the lease lasts.
            (mayStart() ? restore(connection.insert(rows)) : Effect.fail(cancelled)).pipe(
              Effect.onExit((exit) => (Exit.isSuccess(exit) || isUnharmed(exit) ? given(connection) : connection.close))
            )
          )
        )
      )
    )
})

/** `most`: connections of this process to external databases. `fewerMs`: the time until more connections are tried at a pooler that had few. */
export const layer = ({ fewerMs = usualFewerMs, most = usualMost } = {}): Layer.Layer<SqlServers, never, Egress> =>
  Layer.effect(
    SqlServers,
    Effect.map(Egress, ({ guard }) => {
      const places = new Places<Connection>(most)
      return SqlServers.of({ open: (table) => open(guard, places, fewerMs, table) })
    })
  )
