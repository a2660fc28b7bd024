import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"
import { query } from "./sql.ts"
import { waitUntil } from "./Waiting.ts"

/** A key of advisory locks that nobody else has. */
const held = 7_419_001

/**
 * Stops commits of runs where they are about to be made. The database itself does it, so the processes under test are the product's own,
 * and what a run is made of is counted, not listed: part 0 is what the door stores, part n what the run's n-th transition does.
 */
export class HeldCommits {
  readonly #url: string
  readonly #session: PgConnection.PgConnection
  readonly #scope: Scope.Closeable

  private constructor(url: string, session: PgConnection.PgConnection, scope: Scope.Closeable) {
    this.#url = url
    this.#session = session
    this.#scope = scope
  }

  /** In a database that has the schema; takes the right to stop commits until it is closed. */
  static async in(url: string): Promise<HeldCommits> {
    const scope = Scope.makeUnsafe()
    const session = await Effect.runPromise(
      PgConnection.make({ url: Redacted.make(url), applicationName: "test" }).pipe(Scope.provide(scope))
    )
    for (const [table, part] of [
      ["workflow_queue", "0"],
      ["workflow_steps", "new.part"]
    ]) {
      await query(
        url,
        `create function hold_${table}() returns trigger language plpgsql as $$ begin
          perform pg_advisory_xact_lock_shared(${held}, ${part});
          return new;
        end $$`
      )
      await query(url, `create trigger held before insert on ${table} for each row execute function hold_${table}()`)
    }
    return new HeldCommits(url, session, scope)
  }

  /** From now on, whoever would commit this part waits. */
  hold(part: number): Promise<void> {
    return this.#ask("select pg_advisory_lock($1, $2)", [held, part])
  }

  /** Who waits may go on. */
  release(part: number): Promise<void> {
    return this.#ask("select pg_advisory_unlock($1, $2)", [held, part])
  }

  /** Completes when a session of the database stands before its commit, or nobody is left who would: answers whether one does. */
  async someoneWaits(isOver: () => Promise<boolean>): Promise<boolean> {
    let waits = false
    await waitUntil("a commit is held", async () => {
      // Asked for first: who has ended before that waits no more.
      const over = await isOver()
      waits = (await this.#waiting()).length > 0
      return waits || over
    })
    return waits
  }

  /** Ends whoever waits: what they would have committed never was. */
  async refuse(): Promise<void> {
    for (const pid of await this.#waiting()) await query(this.#url, "select pg_terminate_backend($1)", [pid])
    await this.nobodyWaits()
  }

  /** Completes when what was held has been committed, or never will be. */
  async nobodyWaits(): Promise<void> {
    await waitUntil("no commit is held any more", async () => (await this.#waiting()).length === 0)
  }

  close(): Promise<void> {
    return Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }

  async #waiting(): Promise<ReadonlyArray<number>> {
    const rows = await query(
      this.#url,
      `select pid from pg_locks where locktype = 'advisory' and classid = ${held} and not granted
        and database = (select oid from pg_database where datname = current_database())`
    )
    return rows.map(({ pid }) => Number(pid))
  }

  #ask(statement: string, parameters: ReadonlyArray<unknown>): Promise<void> {
    return Effect.runPromise(Effect.asVoid(this.#session.query(statement, parameters)))
  }
}
