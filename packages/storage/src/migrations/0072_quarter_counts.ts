import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The rollups also have counts by the quarter of an hour. A summary of a day reads these, the minutes around its borders, and the batches that are
 * not added up yet, which have a view of their own. The view of all counts goes on having each of them once.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create view counting as
    select k.key_id, one.measure, one.minute, b.team_id, one.count
    from rollup_batches b
      cross join lateral unnest(b.key_ids, b.source_ids, b.destination_ids, b.measures, b.minutes, b.counts)
        as one (key_id, source_id, destination_id, measure, minute, count)
      cross join lateral (values
        (one.key_id), (one.source_id), (one.destination_id), (one.source_id || '>' || one.destination_id), (b.team_id)
      ) as k (key_id)
    where k.key_id is not null`,

  `create or replace view counted as
    select key_id, measure, minute, team_id, count from rollups where right(measure, 8) <> '/quarter'
    union all
    select key_id, measure, minute, team_id, count from counting`,

  // Processes of the previous version may still run for a while.
  `insert into settings (name, value)
    select 'quarter_counts_exact_from', (extract(epoch from date_trunc('hour', now()) + interval '2 hours') * 1000)::int8::text
    where exists (select from rollups)`
]
