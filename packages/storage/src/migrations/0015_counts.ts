import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Events are also counted by source, destination and team, and requests by team. A batch names these ids beside the key. The code that
 * adds up or reads a batch counts it under each of them.
 *
 * The previous version counted by connection only, and counted events of slow rules in the minute in which the rules made them. This
 * migration assigns those counts to the present source and destination of each connection. So the new counts are exact only from a
 * certain time, which is stored. Before that time, rows are counted.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `alter table rollup_batches add column source_ids text[] collate "C", add column destination_ids text[] collate "C"`,
  `alter table rollup_batches alter source_ids set storage external, alter destination_ids set storage external`,

  // Null in a row of the previous version.
  `create or replace view counted as
    select key_id, measure, minute, team_id, count from rollups
    union all
    select k.key_id, one.measure, one.minute, b.team_id, one.count
    from rollup_batches b
      cross join lateral unnest(b.key_ids, b.source_ids, b.destination_ids, b.measures, b.minutes, b.counts)
        as one (key_id, source_id, destination_id, measure, minute, count)
      cross join lateral (values (one.key_id), (one.source_id), (one.destination_id), (b.team_id)) as k (key_id)
    where k.key_id is not null`,

  `insert into rollups (key_id, measure, minute, slot, team_id, count)
    select k.key_id, r.measure, r.minute, r.slot, r.team_id, sum(r.count)
    from rollups r
      left join connections c on c.id = r.key_id
      cross join lateral (
        values (c.source_id), (case when r.measure <> 'ignored' then c.destination_id end), (r.team_id)
      ) as k (key_id)
    where k.key_id is not null
    group by 1, 2, 3, 4, 5
    on conflict do nothing`,

  // Processes of the previous version may still run for a while.
  `insert into settings (name, value)
    select 'counts_exact_from', (extract(epoch from date_trunc('hour', now()) + interval '2 hours') * 1000)::int8::text
    where exists (select from rollups)`
]
