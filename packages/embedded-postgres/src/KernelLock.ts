import { Effect, Predicate, Scope } from "effect"
import { DatabaseSync } from "node:sqlite"
import { attempt, type EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/**
 * Takes the lock on the file `path` until the scope closes; returns `false` at once if it is taken by another process or by
 * another part of this one.
 *
 * The kernel holds the lock for this process and releases it when the process ends, in whatever way. So there are no stale
 * locks and no process ids to compare, and the lock works between containers that share the folder. Node has no file locks.
 * An exclusive SQLite transaction on an empty database is used instead, which works on every platform.
 */
export const tryAcquire = (path: string): Effect.Effect<boolean, EmbeddedPostgresError, Scope.Scope> =>
  Effect.gen(function* () {
    const database = yield* attempt(`The lock file ${path} cannot be used`, () => open(path))
    if (database === undefined) return false
    yield* Effect.addFinalizer(() => Effect.sync(() => database.close()))
    return true
  }).pipe(Effect.uninterruptible)

/** Waits for the lock, runs the effect, and releases the lock. */
export const withLock =
  (path: string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | EmbeddedPostgresError, R> =>
    Effect.scopedWith((scope) =>
      Effect.gen(function* () {
        while (!(yield* tryAcquire(path).pipe(Scope.provide(scope)))) yield* Effect.sleep("20 millis")
        return yield* self
      })
    )

const sqliteBusy = 5

const open = (path: string): DatabaseSync | undefined => {
  const database = new DatabaseSync(path)
  try {
    database.exec("BEGIN EXCLUSIVE")
    return database
  } catch (error) {
    database.close()
    if (Predicate.hasProperty(error, "errcode") && error.errcode === sqliteBusy) return undefined
    throw error
  }
}
