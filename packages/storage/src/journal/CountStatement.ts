/*
 * Counts are exact, and cheap to make: a batch writes down what it has counted as one row, in its own transaction; every few
 * seconds these rows are added up into the rollups, by whoever comes first. A row is deleted by the statement that adds it, so it is
 * counted once whatever is cut off in between, and `counted`, the view of both, tells the same before and after.
 */

/** A part of a batch's statement: writes down the rows `from` of (key_id, measure, minute, team_id, n). */
export const writeCounts = (from: string): string =>
  `insert into rollup_batches (team_id, key_ids, measures, minutes, counts)
    select team_id, array_agg(key_id), array_agg(measure), array_agg(minute), array_agg(n) from ${from} group by team_id`

/** Rows added up by one statement. */
const most = 2_000

const statement = `
with gone as (
  delete from rollup_batches where ctid = any(array(select ctid from rollup_batches limit ${most} for update skip locked))
  returning team_id, key_ids, measures, minutes, counts
), added as (
  insert into rollups (key_id, measure, minute, slot, team_id, count)
  select one.key_id, one.measure, one.minute, $1::int2, gone.team_id, sum(one.count)
  from gone
    cross join lateral unnest(gone.key_ids, gone.measures, gone.minutes, gone.counts) as one (key_id, measure, minute, count)
  group by one.key_id, one.measure, one.minute, gone.team_id
  order by one.key_id, one.measure, one.minute
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
