import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"

/** A database session that lasts longer than one statement: for a transaction that holds a lock. */
export class Session {
  readonly #connection: PgConnection.PgConnection
  readonly #scope: Scope.Closeable

  private constructor(connection: PgConnection.PgConnection, scope: Scope.Closeable) {
    this.#connection = connection
    this.#scope = scope
  }

  static async on(url: string): Promise<Session> {
    const scope = Scope.makeUnsafe()
    const connection = await Effect.runPromise(
      PgConnection.make({ url: Redacted.make(url), applicationName: "test" }).pipe(Scope.provide(scope))
    )
    return new Session(connection, scope)
  }

  async query(statement: string): Promise<void> {
    await Effect.runPromise(this.#connection.query(statement))
  }

  /** Ends the session and its transaction. */
  async close(): Promise<void> {
    await Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }
}
