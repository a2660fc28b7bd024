import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { RunReason } from "@tidegate/channels/machine/Facts"
import { dayMs } from "@tidegate/channels/machine/Times"

/** The time (ms) for which runs are kept. */
export const runsKeptMs = 30 * dayMs
/** The same for scheduled runs that found nothing: a source may have one every minute. */
const quietKeptMs = 3 * dayMs

/** A run: the polls from the first page to the last one. */
export interface SourceRun {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly status: "running" | "succeeded" | "failed"
  readonly reason: RunReason
  readonly items_found: number
  readonly items_new: number
  readonly error_code: string | null
  readonly started_at: number
  readonly finished_at: number | null
}

/** Stores a run as it is now; a manual one has a row already. To be called in a transaction. */
export const saveRun = Effect.fnUntraced(function* (
  run: SourceRun
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { error_code, finished_at, id, items_found, items_new, reason, source_id, started_at, status, team_id } = run
  const isQuiet = reason === "schedule" && items_new === 0 && error_code === null
  const started = new Date(started_at)
  const finished = finished_at === null ? null : new Date(finished_at)
  yield* sql`
    insert into source_runs (id, team_id, source_id, status, reason, items_found, items_new, error_code, scheduled_at, started_at,
      finished_at, expires_at)
    values (${id}, ${team_id}, ${source_id}, ${status}, ${reason}, ${items_found}, ${items_new}, ${error_code}, ${started},
      ${started}, ${finished}, ${new Date(started_at + (isQuiet ? quietKeptMs : runsKeptMs))})
    on conflict (id) do update set status = excluded.status, items_found = excluded.items_found, items_new = excluded.items_new,
      error_code = excluded.error_code, started_at = excluded.started_at, finished_at = excluded.finished_at,
      expires_at = excluded.expires_at`
})
