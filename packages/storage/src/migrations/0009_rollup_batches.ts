import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Counts are written once per batch and added up later. The previous version adds to `rollups` directly and reads only that table. While it
 * still runs, the counts that it returns lack the batches that are not added up yet. Nothing is counted twice.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const vacuum = ["vacuum_scale_factor = 0", "vacuum_threshold = 2000", "vacuum_cost_delay = 0"]

const statements = [
  // The counts of one batch for one team, in arrays; deleted after some seconds. It has no index, because readers always read all rows.
  `create table rollup_batches (
    team_id text collate "C" not null,
    key_ids text[] collate "C" not null,
    measures text[] not null,
    minutes timestamptz[] not null,
    counts bigint[] not null
  ) with (${vacuum.flatMap((setting) => [`autovacuum_${setting}`, `toast.autovacuum_${setting}`]).join(", ")})`,
  // Not compressed: the rows are read once and deleted, so compression costs more than it saves.
  `alter table rollup_batches ${["key_ids", "measures", "minutes", "counts"]
    .map((column) => `alter ${column} set storage external`)
    .join(", ")}`,

  // All counts, added up or not. All readers of counts use this view.
  `create view counted as
    select key_id, measure, minute, team_id, count from rollups
    union all
    select one.key_id, one.measure, one.minute, b.team_id, one.count
    from rollup_batches b
      cross join lateral unnest(b.key_ids, b.measures, b.minutes, b.counts) as one (key_id, measure, minute, count)`
]
