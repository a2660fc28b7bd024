import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { isTransient } from "../Database.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { refusable } from "./Refusable.ts"
import { type SettlementRecord, settleCommit } from "./RoutingStatement.ts"

/**
 * What became of the results of routing jobs. `settled`: they are durable; `made` are the ids of the events and ignored events that they have made,
 * without those that somebody else had made before. `stale`: their basis does not hold any more, nothing was written. `withdrawn`: who handed them in
 * does not own the connection any more. `failed`: nothing is known of them; the poller finds the jobs that are still there.
 */
export type SettlementOutcome =
  | { readonly kind: "settled"; readonly made: ReadonlySet<string> }
  | { readonly kind: "stale" | "withdrawn" }
  | { readonly kind: "failed"; readonly error: SqlError.SqlError }

export interface Settlement extends SettlementRecord {
  /** Bytes that it weighs, about. */
  readonly bytes: number
  /** Asked right before the commit: whether who handed it in still owns the connection. */
  readonly isOwned: () => boolean
  readonly done: (outcome: SettlementOutcome) => void
}

const stale: SettlementOutcome = { kind: "stale" }
const withdrawn: SettlementOutcome = { kind: "withdrawn" }

/**
 * Commits results of routing jobs of whatever connections together. It does not try again: the jobs are still there, and the poller wakes their
 * connection. A result that the database refuses costs the others of its batch nothing.
 */
export const settling = (
  sql: SqlClient.SqlClient,
  tell: (settlement: Settlement, outcome: SettlementOutcome) => void
): ((items: ReadonlyArray<Settlement>) => Effect.Effect<void>) => {
  const commit = (items: ReadonlyArray<Settlement>): Effect.Effect<void> => {
    if (items.length === 0) return Effect.void
    return Effect.suspend(() => {
      const { outcomes, parameters, statement } = settleCommit(items)
      return Effect.map(sql.unsafe(statement, parameters).values, ([row]) => {
        const made = outcomes(row![0] as ReadonlyArray<number>, row![1] as ReadonlyArray<number>)
        for (const [index, item] of items.entries()) {
          const one = made[index]!
          tell(item, one === null ? stale : { kind: "settled", made: one })
        }
      })
    }).pipe(
      refusable,
      withPartitions(sql),
      Effect.catch((error) => {
        if (items.length === 1 || isTransient(error))
          return Effect.sync(() => items.forEach((item) => tell(item, { kind: "failed", error })))
        const half = items.length >> 1
        return Effect.andThen(commit(items.slice(0, half)), commit(items.slice(half)))
      })
    )
  }
  return (items) =>
    Effect.suspend(() => {
      const owned = items.filter((item) => item.isOwned())
      if (owned.length < items.length) for (const item of items) if (!owned.includes(item)) tell(item, withdrawn)
      return commit(owned)
    })
}
