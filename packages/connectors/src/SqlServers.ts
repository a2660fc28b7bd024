import { Context, Data, type Effect, type Scope } from "effect"
import type { SessionFailure } from "./Connector.ts"

/** A table of somebody's PostgreSQL, as a destination writes to it. */
export interface SqlTable {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly username: string
  readonly password: string
  /** Verified against the host; else in the clear. */
  readonly tls: boolean
  /** Seconds to connect and sign in. */
  readonly connectTimeout: number
  /** So many at the most are open. */
  readonly connections: number
  readonly schema: string
  readonly table: string
  /** What each row says, in this order. */
  readonly columns: ReadonlyArray<string>
  /** Columns that have the time of the server. */
  readonly timed: ReadonlyArray<string>
  /** The column by which a row that is there already is let be; null: it is a failure. */
  readonly unique: string | null
}

/** A server has understood the statement, or the wish to sign in, and says no. */
export class SqlRefusal extends Data.TaggedError("SqlRefusal")<{
  /** Its SQLSTATE: five letters and digits. */
  readonly state: string
  /** In its words: whatever a stranger says. */
  readonly said: string
  /** Whether it has ended the connection by it. */
  readonly fatal: boolean
}> {}

/**
 * Inserts a row; gives how many there are more: one or none. May be interrupted at any point. `mayStart` is asked when there is a
 * connection: else nothing is sent over it.
 */
export type Insert = (
  row: ReadonlyArray<string>,
  mayStart: () => boolean
) => Effect.Effect<number, SqlRefusal | SessionFailure>

/** The way to other people's databases. */
export class SqlServers extends Context.Service<
  SqlServers,
  {
    /** Connects when there is something to insert. What is open is closed with the scope. */
    readonly open: (table: SqlTable) => Effect.Effect<Insert, never, Scope.Scope>
  }
>()("@tidegate/connectors/SqlServers") {}
