import { Effect } from "effect"
import type { SqlClient, SqlError } from "effect/sql"
import { isTransient } from "../Database.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { acceptCommit, storedLookup } from "./AcceptStatement.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import { refusable } from "./Refusable.ts"

/**
 * The result of a request. `committed`: it is stored. `stale`: it was routed by an outdated version of its source; nothing was
 * written, and it has to be routed again. `unavailable`: the database could not be reached in time; the request may or may not be
 * stored, and the sender has to repeat it. `failed`: the database refused it; logged with its cause.
 */
export type Accepted = "committed" | "stale" | "unavailable" | "failed"

/**
 * Who has committed a request: `now`: this commit; `earlier`: it was stored when this process looked; `elsewhere`: another process of the host
 * may have, which wakes the actors that have work by it.
 */
export type CommittedBy = "now" | "earlier" | "elsewhere"

/** A request that waits for its commit. */
export interface Acceptance {
  readonly record: RequestRecord
  /** When it was passed to the journal (Unix ms): its time-out counts from then, whatever it waits for. */
  readonly since: number
  readonly done: (outcome: Accepted, by: CommittedBy) => void
}

/** How long a request waits for a database that does not answer before its sender gets a 503. */
const acceptPatienceMs = 4_000

/** Commits requests. `answer` calls one caller back. */
export const accepting = (
  sql: SqlClient.SqlClient,
  now: () => number,
  answer: (item: Acceptance, outcome: Accepted, by?: CommittedBy) => void
): ((items: ReadonlyArray<Acceptance>) => Effect.Effect<void>) => {
  /** The stored ids of the batch: a commit whose answer was lost either happened completely or not at all. */
  const storedIds = (items: ReadonlyArray<Acceptance>) =>
    Effect.map(
      Effect.suspend(() => {
        const { parameters, statement } = storedLookup(items.map(({ record }) => record.id))
        return sql.unsafe<{ id: string }>(statement, parameters)
      }),
      (rows) => new Set(rows.map((row) => row.id))
    )

  const accept = (items: ReadonlyArray<Acceptance>): Effect.Effect<void, SqlError.SqlError> =>
    Effect.suspend(() => {
      const { pairs, parameters, statement } = acceptCommit(items.map((item) => item.record))
      return Effect.map(sql.unsafe(statement, parameters).values, (rows) => {
        const stale = new Set((rows[0]?.[0] ?? []) as ReadonlyArray<number>)
        for (let i = 0; i < items.length; i++) answer(items[i]!, stale.has(pairs[i]!) ? "stale" : "committed")
      })
    }).pipe(refusable, withPartitions(sql))

  const commitAccepted = (items: ReadonlyArray<Acceptance>): Effect.Effect<void> =>
    accept(items).pipe(Effect.catch((error) => recoverAccepted(items, error, items[0]!.since + acceptPatienceMs)))

  const recoverAccepted = (
    items: ReadonlyArray<Acceptance>,
    error: SqlError.SqlError,
    until: number
  ): Effect.Effect<void> => {
    if (!isTransient(error) && error.reason._tag !== "UniqueViolation") return isolate(items, error)
    if (now() >= until) {
      return Effect.andThen(
        Effect.logWarning("requests turned away: the database does not answer", error),
        Effect.sync(() => answerAll(items, "unavailable"))
      )
    }
    return Effect.sleep(100).pipe(
      Effect.andThen(storedIds(items)),
      Effect.flatMap((stored) => {
        const open = items.filter((item) => !stored.has(item.record.id))
        for (const item of items) if (stored.has(item.record.id)) answer(item, "committed", "earlier")
        return open.length === 0 ? Effect.void : Effect.asVoid(accept(open))
      }),
      Effect.catch((again) => recoverAccepted(items, again, until))
    )
  }

  /** One record that the database refuses must not fail the others. */
  const isolate = (items: ReadonlyArray<Acceptance>, error: SqlError.SqlError): Effect.Effect<void> => {
    if (items.length === 1) return refuse(items, error)
    const half = items.length >> 1
    return Effect.andThen(commitAccepted(items.slice(0, half)), commitAccepted(items.slice(half)))
  }

  const refuse = (items: ReadonlyArray<Acceptance>, error: SqlError.SqlError): Effect.Effect<void> =>
    Effect.andThen(
      Effect.annotateLogs(
        Effect.logError("a request could not be stored", { request_id: items[0]?.record.id, error }),
        {
          error_id: items[0]?.record.id
        }
      ),
      Effect.sync(() => answerAll(items, isTransient(error) ? "unavailable" : "failed"))
    )

  const answerAll = (items: ReadonlyArray<Acceptance>, outcome: Accepted): void => {
    for (const item of items) answer(item, outcome)
  }

  return commitAccepted
}
