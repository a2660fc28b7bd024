import type { PgTypes } from "@effect/sql-pg"
import { many, Rows } from "./Rows.ts"

/** A rate-limited delivery that is about to start, and when (Unix ms). */
export interface MarkRecord {
  readonly eventId: string
  readonly startedAt: number
}

const marks = new Rows<MarkRecord>("m", [
  ["id", "text", ({ eventId }) => eventId],
  ["at", "timestamptz", ({ startedAt }) => startedAt]
])

const statement = `
update deliveries set started_at = m.at
from ${marks.from(1, many)}
where deliveries.event_id = any($1::text[]) and deliveries.event_id = m.id`

/** Stores the start of deliveries in their queue rows. */
export const markCommit = (
  items: ReadonlyArray<MarkRecord>
): { readonly statement: string; readonly parameters: ReadonlyArray<PgTypes.Parameter> } => ({
  statement,
  parameters: marks.bind(items, false).parameters
})
