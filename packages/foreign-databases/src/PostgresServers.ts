import { make, type PgConnection } from "@effect/sql-pg/PgConnection"
import { Clock, Duration, Effect, Exit, Fiber, Layer, Redacted, Scope, Semaphore } from "effect"
import type { SqlError } from "effect/sql"
import { cancelled, SessionFailure } from "@tidegate/connectors/Connector"
import { type Insert, SqlRefusal, SqlServers, type SqlTable } from "@tidegate/connectors/SqlServers"
import { errorCodeOf, errorMessageOf } from "@tidegate/egress/AttemptErrorCode"
import { Egress, type Guard } from "@tidegate/egress/Egress"
import { type Idle, Places } from "./Places.ts"
import { PostgresStream } from "./PostgresStream.ts"
import { FatalRefusal, ServerFault, stateOf } from "./ServerFrames.ts"

/** Connections of a process to other people's databases, unless told. */
const usualMost = 256

/** How long a send waits for a place among them: less than a send may take, so that it is said what it has waited for. */
const patience = "20 seconds"

/** Nothing was sent, and it says nothing of the server. */
const noPlace = new SessionFailure({
  code: "INTERNAL_ERROR",
  message: "the gateway has too many connections to databases: none was free for this one",
  final: false,
  broken: false,
  unsent: true
})

/** A pooler in front of the server has fewer connections of its own than were opened: nothing was sent, and there are others to send by. */
const fewerLeft = new SessionFailure({
  code: "TIMEOUT",
  message: "a pooler in front of the server has no connection left for one more",
  final: false,
  broken: false,
  unsent: true
})

/** For so long a destination opens no more connections than its pooler had left, unless told (ms). Then more are tried. */
const usualFewerMs = 300_000

/** A connection that is signed in, and that the server itself has answered by. */
interface Connection extends Idle {
  readonly insert: (row: ReadonlyArray<string>) => Effect.Effect<number, SqlRefusal | SessionFailure>
  /** Whether it can be used again. */
  readonly isOpen: () => boolean
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** The only statement: names are quoted, values are bound, and those that the server has itself are left to it. */
export const statementOf = ({ columns, schema, table, timed, unique }: SqlTable): string => {
  const names = [...columns, ...timed].map(quoted).join(", ")
  const values = [...columns.map((_, i) => `$${i + 1}`), ...timed.map(() => "now()")].join(", ")
  const conflict = unique === null ? "" : ` on conflict (${quoted(unique)}) do nothing`
  return `insert into ${quoted(schema)}.${quoted(table)} (${names}) values (${values})${conflict}`
}

const notSignedIn =
  "not connected and signed in within config.connect_timeout: a pooler in front of the server that has no connection left " +
  "keeps others waiting; config.max_concurrency says how many are opened"

/** Signed in at a pooler, which answers nothing. */
const notServed = new SessionFailure({ code: "TIMEOUT", message: notSignedIn, final: false, broken: true })

/** What has happened, by what the stream was ended with, or by what the server has answered. */
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

/** Connects and signs in; what is opened by it is closed with the scope. */
const connect = Effect.fnUntraced(function* (guard: Guard, table: SqlTable) {
  const streams: Array<PostgresStream> = []
  const session = yield* make({
    // What it opens beside the first one asks the server to stop a statement.
    stream: () => {
      const stream = new PostgresStream(guard, table)
      if (streams.length === 0) streams.push(stream)
      return stream
    },
    // The stream has seen to it.
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

/** Inserts over the connections of one destination, which live no longer than the scope. */
const open = Effect.fnUntraced(function* (
  guard: Guard,
  places: Places<Connection>,
  fewerMs: number,
  table: SqlTable
): Effect.fn.Return<Insert, never, Scope.Scope> {
  const scope = yield* Effect.scope
  const statement = statementOf(table)
  /** The one that was used last is used next. */
  const idle: Array<Connection> = []

  const share = places.share()
  const place = places
    .take(share)
    .pipe(Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.fail(noPlace) }))

  // Who is interrupted keeps its place until its statement has been stopped: its connection is not used again.
  const turns = Semaphore.makeUnsafe(table.connections)
  let open = 0
  let fewerUntil = 0
  /**
   * A pooler that keeps a server's connection for each of its own lets more of them in than it has, and answers the others when one is
   * closed. Those that are there go on being used, so this may be never.
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

  /** Nothing is asked, to learn whether there is a server behind a pooler that has let us in. */
  const proved = Effect.fnUntraced(function* (session: PgConnection, stream: PostgresStream) {
    let isLate = false
    const late = Effect.sync(() => {
      isLate = true
      // Stopping a statement that no server has begun takes the pooler as long again.
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
        // Poolers that share a server's connections know no statement by its name.
        insert: (row) =>
          session.query(statement, row, false).pipe(
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
    // Its server has ended it meanwhile.
    return connection.isOpen() ? Effect.succeed(connection) : Effect.andThen(connection.close, taken)
  })

  const given = (connection: Connection): Effect.Effect<void> =>
    Effect.suspend(() => {
      const next = connection.isOpen() ? places.idle(share, connection) : "close"
      if (next === "idle") idle.push(connection)
      return next === "close" ? connection.close : Effect.void
    })

  return (row, mayStart) =>
    Effect.andThen(
      asManyAgain,
      turns.withPermit(
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(restore(taken), (connection) =>
            // To get here may have taken as long as a lease lasts.
            (mayStart() ? restore(connection.insert(row)) : Effect.fail(cancelled)).pipe(
              Effect.onExit((exit) => (Exit.isSuccess(exit) || isUnharmed(exit) ? given(connection) : connection.close))
            )
          )
        )
      )
    )
})

/** `most`: connections of this process to other people's databases. `fewerMs`: before a pooler is tried again that had few left. */
export const layer = ({ fewerMs = usualFewerMs, most = usualMost } = {}): Layer.Layer<SqlServers, never, Egress> =>
  Layer.effect(
    SqlServers,
    Effect.map(Egress, ({ guard }) => {
      const places = new Places<Connection>(most)
      return SqlServers.of({ open: (table) => open(guard, places, fewerMs, table) })
    })
  )
