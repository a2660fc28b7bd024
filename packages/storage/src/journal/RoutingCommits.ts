import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { isTransient } from "../Database.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { refusable } from "./Refusable.ts"
import { routingCommit } from "./RoutingStatement.ts"
import type { RoutingResults } from "./RoutingRecord.ts"

/**
 * The outcome of a commit of routing results. `committed`: they are stored; `made` has the ids of the events and ignored events
 * that they created, without those that existed already. `stale`: their settings are outdated; nothing was written.
 * `withdrawn`: the caller no longer owns the connection. `failed`: it is unknown whether they are stored; the poller finds the
 * jobs that still exist.
 */
export type RoutingOutcome =
  | { readonly kind: "committed"; readonly made: ReadonlySet<string> }
  | { readonly kind: "stale" | "withdrawn" }
  | { readonly kind: "failed"; readonly error: SqlError.SqlError }

export interface RoutingCommit extends RoutingResults {
  /** Its approximate weight in bytes. */
  readonly bytes: number
  /** Called right before the commit: whether the caller still owns the connection. */
  readonly isOwned: () => boolean
  readonly done: (outcome: RoutingOutcome) => void
}

const stale: RoutingOutcome = { kind: "stale" }
const withdrawn: RoutingOutcome = { kind: "withdrawn" }

/**
 * Commits routing results of any connections together. It does not retry: the jobs still exist, and the poller wakes their
 * connections. A result that the database refuses does not affect the others of its batch.
 */
export const committingRouting = (
  sql: SqlClient.SqlClient,
  answer: (item: RoutingCommit, outcome: RoutingOutcome) => void
): ((items: ReadonlyArray<RoutingCommit>) => Effect.Effect<void>) => {
  const commit = (items: ReadonlyArray<RoutingCommit>): Effect.Effect<void> => {
    if (items.length === 0) return Effect.void
    return Effect.suspend(() => {
      const { outcomes, parameters, statement } = routingCommit(items)
      return Effect.map(sql.unsafe(statement, parameters).values, ([row]) => {
        const made = outcomes(row![0] as ReadonlyArray<number>, row![1] as ReadonlyArray<number>)
        for (const [index, item] of items.entries()) {
          const one = made[index]!
          answer(item, one === null ? stale : { kind: "committed", made: one })
        }
      })
    }).pipe(
      refusable,
      withPartitions(sql),
      Effect.catch((error) => {
        if (items.length === 1 || isTransient(error))
          return Effect.sync(() => items.forEach((item) => answer(item, { kind: "failed", error })))
        const half = items.length >> 1
        return Effect.andThen(commit(items.slice(0, half)), commit(items.slice(half)))
      })
    )
  }
  return (items) =>
    Effect.suspend(() => {
      const owned = items.filter((item) => item.isOwned())
      if (owned.length < items.length) for (const item of items) if (!owned.includes(item)) answer(item, withdrawn)
      return commit(owned)
    })
}
