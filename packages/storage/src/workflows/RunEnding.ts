import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { visitEntries } from "../reads/RunRow.ts"

/** A run that is to be ended from outside. */
export interface UnendedRun {
  readonly workflow_id: string
  readonly request_id: string
  readonly source_id: string
  readonly version: number
  readonly steps_count: number
  /** Characters of its steps' outputs. */
  readonly kept: number
  readonly started_at: Date | null
}

/**
 * Reads an unfinished run with this number of journal entries, and passes the changes of its steps to `visit`. Null: another process has continued
 * the run, or it is finished.
 */
export const readUnended = Effect.fnUntraced(function* (
  { id, parts }: { readonly id: string; readonly parts: number },
  visit: (steps: string) => void
): Effect.fn.Return<UnendedRun | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [run] = yield* sql<UnendedRun>`
    select workflow_id, request_id, source_id, version, steps_count, kept, started_at from workflow_runs where id = ${id} and parts = ${parts} and finished_at is null`
  if (run === undefined) return null
  yield* visitEntries([{ id, parts }], null, ({ steps }) => visit(steps))
  return run
})
