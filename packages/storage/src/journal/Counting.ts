import { randomInt } from "node:crypto"
import { Effect, Latch } from "effect"
import type { Scope } from "effect"
import type { SqlError } from "effect/sql"
import { passed } from "@tidegate/runtime/TestSignal"
import { JournalSql } from "../Database.ts"
import { addUpCommit } from "./CountStatement.ts"

/**
 * Counts are added up after this time (ms), or after this many counted records. A longer time means fewer written rows, but
 * more rows to read for a count.
 */
const afterMs = 5_000
const maxWaiting = 20_000

/**
 * Each process adds up in its own slot, so that processes do not wait for each other's rows. Two processes that draw the same
 * slot may wait for each other.
 */
const slots = 20_000

/** Adds up all present counts of batches. Several concurrent calls share the work. */
export const addUp = (slot: number): Effect.Effect<void, SqlError.SqlError, JournalSql> =>
  Effect.gen(function* () {
    const { parameters, statement } = addUpCommit(slot)
    let more = true
    while (more) {
      const [row] = yield* (yield* JournalSql).unsafe<{ more: boolean }>(statement, parameters)
      more = row?.more === true
    }
  })

/**
 * Adds up the counts that other processes have left, and then all later ones, while the scope lives. Returns a function to
 * report counted records; without reports the database is not queried.
 */
export const addingUp: Effect.Effect<(records: number) => void, never, JournalSql | Scope.Scope> = Effect.gen(
  function* () {
    const slot = randomInt(slots)
    const some = Latch.makeUnsafe()
    const many = Latch.makeUnsafe()
    let waiting = 0
    const counted = (records: number): void => {
      waiting += records
      some.openUnsafe()
      if (waiting >= maxWaiting) many.openUnsafe()
    }
    yield* Effect.forkScoped(
      Effect.gen(function* () {
        while (true) {
          some.closeUnsafe()
          many.closeUnsafe()
          waiting = 0
          yield* Effect.catch(addUp(slot), (error) =>
            Effect.andThen(Effect.logWarning("counts could not be added up yet", error), some.open)
          )
          passed("count")
          yield* some.await
          yield* Effect.raceFirst(Effect.sleep(afterMs), many.await)
        }
      })
    )
    return counted
  }
)
