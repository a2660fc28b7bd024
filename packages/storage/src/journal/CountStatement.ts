import { alphabet } from "@tidegate/model/Ids"

/*
 * Counts are exact, and cheap to make: a batch writes down what it has counted as one row, in its own transaction; every few
 * seconds these rows are added up into the rollups, by whoever comes first. A row is deleted by the statement that adds it, so it is
 * counted once whatever is cut off in between, and `counted`, the view of both, tells the same before and after.
 */

/**
 * A part of a statement: writes down the rows `from` of (key_id, source_id, destination_id, measure, minute, team_id, n), the second and
 * third null where there is none. Each is counted under all of its ids, under `pairKey` of these two, and under its team's. `minute` is that of the time in the id of
 * what is counted, by which lists find it.
 *
 * Of a source: accepted, rejected. Of a connection, with its source and destination: created, successful, failed, cancelled, in the
 * minute of the event; ignored, which has no destination. Of a destination: attempt_successful, attempt_failed. Of a transformation:
 * execution_successful, execution_failed. Of a workflow, in the minute of the run: run, run_succeeded, run_failed, and run_ms, how long these took.
 */
export const writeCounts = (from: string): string =>
  `insert into rollup_batches (team_id, key_ids, source_ids, destination_ids, measures, minutes, counts)
    select team_id, array_agg(key_id), array_agg(source_id), array_agg(destination_id), array_agg(measure), array_agg(minute),
      array_agg(n)
    from ${from} group by team_id`

/** What is counted of a source and has a destination is counted under this, too: as it stands in the statement below, and in the view. */
export const pairKey = (source: string, destination: string): string => `${source}>${destination}`

/** The minute in a generated id with three letters before the underscore, as an expression. */
export const minuteOfId = (id: string): string =>
  `date_trunc('minute', to_timestamp((
    select sum((strpos('${alphabet}', substr(${id}, 4 + i, 1)) - 1)::int8 << (5 * (10 - i))) from generate_series(1, 10) i
  ) / 1000.0))`

/** Rows added up by one statement. */
const most = 2_000

const statement = `
with gone as (
  delete from rollup_batches where ctid = any(array(select ctid from rollup_batches limit ${most} for update skip locked))
  returning team_id, key_ids, source_ids, destination_ids, measures, minutes, counts
), added as (
  insert into rollups (key_id, measure, minute, slot, team_id, count)
  select k.key_id, one.measure, one.minute, $1::int2, gone.team_id, sum(one.count)
  from gone
    cross join lateral unnest(gone.key_ids, gone.source_ids, gone.destination_ids, gone.measures, gone.minutes, gone.counts)
      as one (key_id, source_id, destination_id, measure, minute, count)
    cross join lateral (values
      (one.key_id), (one.source_id), (one.destination_id), (one.source_id || '>' || one.destination_id), (gone.team_id)
    ) as k (key_id)
  where k.key_id is not null
  group by k.key_id, one.measure, one.minute, gone.team_id
  order by k.key_id, one.measure, one.minute
  on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count
)
select count(*) = ${most} as more from gone`

/** Adds up what batches have counted; answers whether there may be `more`. `slot`: the adder's own, so that none waits for another. */
export const addUpCommit = (
  slot: number
): { readonly statement: string; readonly parameters: ReadonlyArray<number> } => ({
  statement,
  parameters: [slot]
})
