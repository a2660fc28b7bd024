import { randomInt } from "node:crypto"
import { Effect, Latch } from "effect"
import type { Scope } from "effect"
import type { SqlError } from "effect/sql"
import { passed } from "@tidegate/runtime/TestSignal"
import { JournalSql } from "../Database.ts"
import { addUpCommit } from "./CountStatement.ts"

/**
 * Counts wait so long to be added up (ms), or until so many records have been counted: the longer, the fewer rows are written, and the
 * more has to be read by who asks for counts meanwhile.
 */
const afterMs = 5_000
const most = 20_000

/** Processes add up in slots of their own, so that they never wait for each other's rows; two that draw the same one may. */
const slots = 20_000

/** Adds up all that batches have counted until now. Several at once share the work. */
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
 * Adds up what others have left who did not come to it, and what is counted from now on, for as long as the scope lives. To be told of
 * the records that were counted; while there are none, it asks the database nothing.
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
      if (waiting >= most) many.openUnsafe()
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
