import { Context, Data, type Effect, type Scope } from "effect"
import type { SessionFailure } from "./Failure.ts"
import type { ServerSignIn } from "./Server.ts"

/** A table of an external PostgreSQL server, to which a destination writes. */
export interface SqlTable extends ServerSignIn {
  readonly database: string
  /** The maximum number of open connections. */
  readonly connections: number
  readonly schema: string
  readonly table: string
  /** The columns that each row fills, in this order. */
  readonly columns: ReadonlyArray<string>
  /** Columns that get the server's time. */
  readonly timed: ReadonlyArray<string>
  /** The column by which an existing row is detected and left unchanged; null: an existing row is a failure. */
  readonly unique: string | null
}

/** A server has understood and refused the statement or the sign-in. */
export class SqlRefusal extends Data.TaggedError("SqlRefusal")<{
  /** SQLSTATE: five letters and digits. */
  readonly state: string
  /** The server's message: untrusted text. */
  readonly said: string
  /** Whether the server closed the connection with it. */
  readonly fatal: boolean
}> {}

/**
 * Inserts rows with one statement, all or none, and returns the number of rows added. May be interrupted at any point. `mayStart` is called
 * once there is a connection: if it returns false, nothing is sent.
 */
export type Insert = (
  rows: ReadonlyArray<ReadonlyArray<string>>,
  mayStart: () => boolean
) => Effect.Effect<number, SqlRefusal | SessionFailure>

/** Connects to external databases. */
export class SqlServers extends Context.Service<
  SqlServers,
  {
    /** Connects when the first rows are inserted. Closes its connections with the scope. */
    readonly open: (table: SqlTable) => Effect.Effect<Insert, never, Scope.Scope>
  }
>()("@tidegate/connectors/SqlServers") {}
