import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import { isTransient } from "../Database.ts"
import { type AttemptRecord, attemptCommit } from "./AttemptStatement.ts"
import { markCommit, type MarkRecord } from "./MarkStatement.ts"
import { refusable } from "./Refusable.ts"

/**
 * The result of an attempt: the event's state after it, or `superseded` when the event has progressed without it (another runner
 * has recorded this attempt number, or the event is gone).
 */
export type Recorded = "PENDING" | "SUCCESSFUL" | "FAILED" | "CANCELLED" | "superseded"

/** An attempt that waits for its commit. */
export interface Attempt {
  readonly record: AttemptRecord
  readonly done: (outcome: Recorded) => void
}

/** The start of a delivery that waits for its commit. */
export interface Mark extends MarkRecord {
  readonly done: (marked: boolean) => void
}

/**
 * Commits attempts, and repeats a commit until the database answers. `answer` calls one caller back, with what is then stored.
 */
export const recording = (
  sql: SqlClient.SqlClient,
  answer: (item: Attempt, outcome: Recorded) => void,
  recorded: (record: AttemptRecord, state: Recorded) => void
): ((items: ReadonlyArray<Attempt>) => Effect.Effect<void>) => {
  const commitAttempts = (items: ReadonlyArray<Attempt>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = attemptCommit(items.map((item) => item.record))
      return sql.unsafe(statement, parameters).values
    }).pipe(
      refusable,
      Effect.map((rows) => {
        const states = new Map(rows.map((row) => [row[0] as string, row[1] as Recorded]))
        for (const item of items) {
          const state = states.get(item.record.eventId) ?? "superseded"
          answer(item, state)
          recorded(item.record, state)
        }
      }),
      Effect.catch((error) => {
        if (isTransient(error)) {
          return Effect.andThen(Effect.sleep(200), commitAttempts(items))
        }
        if (items.length > 1) {
          const half = items.length >> 1
          return Effect.andThen(commitAttempts(items.slice(0, half)), commitAttempts(items.slice(half)))
        }
        return Effect.andThen(
          Effect.logError("an attempt could not be recorded", { event_id: items[0]?.record.eventId, error }),
          Effect.sync(() => items.forEach((item) => answer(item, "superseded")))
        )
      })
    )

  return commitAttempts
}

/** Stores the starts of deliveries, once. */
export const marking =
  (sql: SqlClient.SqlClient, answer: (item: Mark, marked: boolean) => void) =>
  (items: ReadonlyArray<Mark>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { parameters, statement } = markCommit(items)
      return sql.unsafe(statement, parameters)
    }).pipe(
      refusable,
      Effect.match({
        onSuccess: () => items.forEach((item) => answer(item, true)),
        onFailure: () => items.forEach((item) => answer(item, false))
      })
    )
