import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Counts that are written down by the batch and added up later. The version before adds to `rollups` at once and reads nothing else:
 * until it is gone, its counts lag by what this one has not added up yet, and nothing is counted twice.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const vacuum = ["vacuum_scale_factor = 0", "vacuum_threshold = 2000", "vacuum_cost_delay = 0"]

const statements = [
  // What one batch has counted for one team, column by column; gone some seconds later. It has no index: whoever reads it, reads it all.
  `create table rollup_batches (
    team_id text collate "C" not null,
    key_ids text[] collate "C" not null,
    measures text[] not null,
    minutes timestamptz[] not null,
    counts bigint[] not null
  ) with (${vacuum.flatMap((setting) => [`autovacuum_${setting}`, `toast.autovacuum_${setting}`]).join(", ")})`,
  // Compressing what is read once and deleted costs more than it saves.
  `alter table rollup_batches ${["key_ids", "measures", "minutes", "counts"]
    .map((column) => `alter ${column} set storage external`)
    .join(", ")}`,

  // What has been counted, added up or not: the one thing to read counts from.
  `create view counted as
    select key_id, measure, minute, team_id, count from rollups
    union all
    select one.key_id, one.measure, one.minute, b.team_id, one.count
    from rollup_batches b
      cross join lateral unnest(b.key_ids, b.measures, b.minutes, b.counts) as one (key_id, measure, minute, count)`
]
