import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { maxSamples } from "@tidegate/model/SystemEvents"

/** The failures of a subject, added up over batches. */
export interface Occurrence {
  readonly team_id: string
  readonly kind: "delivery" | "run" | "unverified" | "channel" | "queue"
  readonly subject_id: string
  readonly code: string
  readonly count: number
  /** Of `delivery`: the events that have failed for good, and the ids of some. */
  readonly ended: number
  readonly response_status: number | null
  /** The latest first. */
  readonly samples: ReadonlyArray<string>
  readonly ended_samples: ReadonlyArray<string>
  readonly first_at: Date
  readonly last_at: Date
}

/** Rows that are taken at once. */
export const takenAtOnce = 2_000

/** The first ids of a list in a text, each once. */
const listed = (ids: string | null): ReadonlyArray<string> =>
  [...new Set((ids ?? "").split(",").filter((id) => id !== ""))].slice(0, maxSamples)

type Row = Omit<Occurrence, "samples" | "ended_samples"> & {
  readonly samples: string | null
  readonly ended_samples: string | null
  readonly rows: number
}

/** Takes what has been written since the last time, added up. To be called in the transaction that makes something of it. */
export const takeOccurrences: Effect.Effect<
  { readonly occurrences: ReadonlyArray<Occurrence>; readonly more: boolean },
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    with gone as (
      delete from occurrences where ctid = any(array(select ctid from occurrences limit ${takenAtOnce} for update skip locked))
      returning *
    )
    select team_id, kind, subject_id, code, sum(count)::float8 as count, sum(ended)::float8 as ended, count(*)::int4 as rows,
      (array_agg(response_status order by last_at desc) filter (where response_status is not null))[1] as response_status,
      string_agg(array_to_string(samples, ','), ',' order by last_at desc) as samples,
      string_agg(array_to_string(ended_samples, ','), ',' order by last_at desc) as ended_samples,
      min(first_at) as first_at, max(last_at) as last_at
    from gone group by team_id, kind, subject_id, code order by team_id, kind, subject_id, code`
  return {
    more: rows.reduce((sum, row) => sum + row.rows, 0) === takenAtOnce,
    occurrences: rows.map((row) =>
      Object.assign({}, row, { samples: listed(row.samples), ended_samples: listed(row.ended_samples) })
    )
  }
})

/** Writes that something has gone wrong with the channel of a source. To be called in the transaction that stores it. */
export const noteChannelFailure = Effect.fnUntraced(function* (
  { code, source_id, team_id }: { readonly team_id: string; readonly source_id: string; readonly code: string },
  at: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into occurrences (team_id, kind, subject_id, code, count, first_at, last_at)
    values (${team_id}, 'channel', ${source_id}, ${code}, 1, ${at}, ${at})`
})
