import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"
import { connect, type Socket } from "node:net"

export type Row = Readonly<Record<string, unknown>>

interface Open {
  readonly connection: PgConnection.PgConnection
  readonly socket: Socket
  readonly scope: Scope.Closeable
  /** Closes it when it is idle for long. */
  timer: NodeJS.Timeout | undefined
}

/**
 * Connections that no statement uses at the moment, by URL. Suites ask the database every few milliseconds for what they wait
 * for, and a new connection costs both sides more than such a statement.
 */
const idle = new Map<string, Array<Open>>()
/** A connection without statements for this time is closed, so that it keeps neither a process nor a database from its end. */
const idleMs = 500
/** For a connection; a server that stands still is not waited for without end. */
const connectTimeout = "20 seconds"

const open = async (url: string): Promise<Open> => {
  const { hostname, port } = new URL(url)
  const sockets: Array<Socket> = []
  const stream = (): Socket => {
    const socket = connect(Number(port === "" ? 5432 : port), hostname).setNoDelay(true)
    sockets.push(socket)
    return socket
  }
  const scope = Scope.makeUnsafe()
  try {
    const connection = await Effect.runPromise(
      PgConnection.make({
        url: Redacted.make(url),
        stream,
        applicationName: "test",
        connectTimeout
      }).pipe(Scope.provide(scope))
    )
    return { connection, socket: sockets[0]!, scope, timer: undefined }
  } catch (error) {
    for (const socket of sockets) socket.destroy()
    throw error
  }
}

const close = ({ scope, socket }: Open): Promise<void> =>
  Effect.runPromise(Scope.close(scope, Exit.void)).finally(() => socket.destroy())

const take = (url: string): Open | null => {
  const kept = idle.get(url)?.pop()
  if (kept === undefined) return null
  clearTimeout(kept.timer)
  return kept.socket.destroyed ? take(url) : kept
}

const keep = (url: string, used: Open): void => {
  const others = idle.get(url) ?? []
  idle.set(url, others)
  others.push(used)
  used.timer = setTimeout(() => {
    others.splice(others.indexOf(used), 1)
    // Its server may have been killed meanwhile.
    close(used).catch(() => {})
  }, idleMs)
}

/** Runs one statement. A connection that has failed, or was lost, is not used again: it cannot affect a later statement. */
export const query = async (
  url: string,
  statement: string,
  parameters?: ReadonlyArray<unknown>
): Promise<ReadonlyArray<Row>> => {
  const used = take(url) ?? (await open(url))
  try {
    // Not prepared: a plan would outlive a migration.
    const { rows } = await Effect.runPromise(used.connection.query(statement, parameters, false))
    keep(url, used)
    return rows
  } catch (error) {
    await close(used)
    throw error
  }
}
