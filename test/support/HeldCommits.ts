import * as PgConnection from "@effect/sql-pg/PgConnection"
import { Effect, Exit, Redacted, Scope } from "effect"
import { query } from "./sql.ts"
import { waitUntil } from "./Waiting.ts"

/** The class of advisory locks that only this module uses. */
const held = 7_419_001

/**
 * Stops commits of runs just before they are made. Triggers in the database do this, so the tested processes run unchanged code.
 * Commits are identified by a number: 0 is the insert of the run by ingress, n is the n-th journal entry of the run.
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

  /** For a database that has the schema. Holds commits back until it is closed. */
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

  /** From now on, sessions that are about to commit this journal entry wait. */
  hold(part: number): Promise<void> {
    return this.#ask("select pg_advisory_lock($1, $2)", [held, part])
  }

  /** Waiting sessions continue. */
  release(part: number): Promise<void> {
    return this.#ask("select pg_advisory_unlock($1, $2)", [held, part])
  }

  /** Completes when a session waits before its commit, or when `isOver` says that none will. Returns whether a session waits. */
  async someoneWaits(isOver: () => Promise<boolean>): Promise<boolean> {
    let waits = false
    await waitUntil("a commit is held", async () => {
      // `isOver` is asked first: then a session that ended before is not counted as waiting.
      const over = await isOver()
      waits = (await this.#sessions("waiting")).length > 0
      return waits || over
    })
    return waits
  }

  /** Terminates all waiting sessions, so their commits never happen. */
  async refuse(): Promise<void> {
    for (const pid of await this.#sessions("waiting")) await query(this.#url, "select pg_terminate_backend($1)", [pid])
    await this.nobodyWaits()
  }

  /**
   * Completes when all held commits have been made or terminated. A session that no longer waits has its lock until its transaction ends,
   * so it is counted until then.
   */
  async nobodyWaits(): Promise<void> {
    await waitUntil("no commit is held any more", async () => (await this.#sessions("open")).length === 0)
  }

  close(): Promise<void> {
    return Effect.runPromise(Scope.close(this.#scope, Exit.void))
  }

  /** Sessions that wait before their commit, or all whose transaction passed the trigger and has not ended. */
  async #sessions(which: "waiting" | "open"): Promise<ReadonlyArray<number>> {
    const rows = await query(
      this.#url,
      `select pid from pg_locks where locktype = 'advisory' and classid = ${held} and mode = 'ShareLock'
        and (not granted or ${which === "open"})
        and database = (select oid from pg_database where datname = current_database())`
    )
    return rows.map(({ pid }) => Number(pid))
  }

  #ask(statement: string, parameters: ReadonlyArray<unknown>): Promise<void> {
    return Effect.runPromise(Effect.asVoid(this.#session.query(statement, parameters)))
  }
}
