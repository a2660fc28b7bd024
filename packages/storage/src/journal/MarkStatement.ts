import type { PgTypes } from "@effect/sql-pg"
import * as Columns from "./Columns.ts"

/** A paced delivery that is about to start, and when (Unix ms). */
export interface MarkRecord {
  readonly eventId: string
  readonly startedAt: number
}

const statement = `
update deliveries set started_at = m.at
from unnest($1::text[], $2::timestamptz[]) as m (id, at)
where deliveries.event_id = any($1::text[]) and deliveries.event_id = m.id`

/** Notes on the queue rows that their deliveries have started. */
export const markCommit = (
  items: ReadonlyArray<MarkRecord>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter> } => ({
  statement,
  parameters: [
    Columns.text(items.map(({ eventId }) => eventId)),
    Columns.timestamptz(items.map(({ startedAt }) => startedAt))
  ]
})
