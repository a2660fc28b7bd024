import { alphabet } from "@tidegate/model/Ids"

/*
 * Counts are exact and cheap. A batch writes its counts as one row, in its own transaction. Every few seconds a process adds
 * these rows to the rollups. The statement that adds a row also deletes it, so it is counted once, even after a crash. The view
 * `counted` combines both, and returns the same before and after.
 */

/**
 * A part of a statement. It writes counts from the rows `from` of (key_id, source_id, destination_id, measure, minute, team_id,
 * n). The second and third are null if there is none. Each count belongs to all of its ids, to the `pairKey` of source and
 * destination, and to its team. `minute` is that of the time in the id of the counted record, by which lists find it.
 *
 * Measures of a source: accepted, rejected. Of a connection, with its source and destination, in the minute of the event:
 * created, successful, failed, cancelled; ignored, which has no destination. Of a destination: attempt_successful,
 * attempt_failed. Of a transformation: execution_successful, execution_failed. Of a workflow, in the minute of the run: run,
 * run_succeeded, run_failed, and run_ms (the duration of finished runs).
 */
export const writeCounts = (from: string): string =>
  `insert into rollup_batches (team_id, key_ids, source_ids, destination_ids, measures, minutes, counts)
    select team_id, array_agg(key_id), array_agg(source_id), array_agg(destination_id), array_agg(measure), array_agg(minute),
      array_agg(n)
    from ${from} group by team_id`

/** The key of a count that has a source and a destination. The statement below and the view build it in the same way. */
export const pairKey = (source: string, destination: string): string => `${source}>${destination}`

/** An SQL expression for the minute in a generated id whose prefix has three letters. */
export const minuteOfId = (id: string): string =>
  `date_trunc('minute', to_timestamp((
    select sum((strpos('${alphabet}', substr(${id}, 4 + i, 1)) - 1)::int8 << (5 * (10 - i))) from generate_series(1, 10) i
  ) / 1000.0))`

/** The largest number of rows that one statement adds up. */
const maxAtOnce = 2_000

/**
 * A summary of a day reads quarters of an hour instead of minutes: a fifteenth of the rows. They are rows of the rollups under a measure of their
 * own, which is the measure with this ending.
 */
const quarterEnding = "/quarter"

/** The measure of the quarters of an hour of a measure. */
export const quarterMeasure = (measure: string): string => measure + quarterEnding

/** An SQL expression for the measure of which this is the quarters', and for whether a measure is one of quarters. */
export const measureOfQuarter = (measure: string): string => `left(${measure}, -${quarterEnding.length})`
export const isOfQuarters = (measure: string): string =>
  `right(${measure}, ${quarterEnding.length}) = '${quarterEnding}'`

/** An SQL expression for the quarter of an hour of a time. */
export const quarterOf = (minute: string): string => `date_bin('15 minutes', ${minute}, 'epoch'::timestamptz)`

/** The setting with the time (Unix ms, a full hour) since which there are quarters. None: since always. */
export const quartersFrom = "quarter_counts_exact_from"

/** Parts of a statement that add the rows of (key_id, measure, minute, team_id, count) of `from` to the rollups, in a slot. */
export const addToRollups = (from: string, slot: string): string => {
  const added = (measure: string, minute: string): string => `
  insert into rollups (key_id, measure, minute, slot, team_id, count)
  select key_id, ${measure}, ${minute}, ${slot}::int2, team_id, sum(count)
  from ${from} group by 1, 2, 3, team_id order by 1, 2, 3
  on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count`
  return `added_minutes as (${added("measure", "minute")}
), added_quarters as (${added(`measure || '${quarterEnding}'`, quarterOf("minute"))}
)`
}

const statement = `
with gone as (
  delete from rollup_batches where ctid = any(array(select ctid from rollup_batches limit ${maxAtOnce} for update skip locked))
  returning team_id, key_ids, source_ids, destination_ids, measures, minutes, counts
), counts as materialized (
  select k.key_id, one.measure, one.minute, gone.team_id, sum(one.count) as count
  from gone
    cross join lateral unnest(gone.key_ids, gone.source_ids, gone.destination_ids, gone.measures, gone.minutes, gone.counts)
      as one (key_id, source_id, destination_id, measure, minute, count)
    cross join lateral (values
      (one.key_id), (one.source_id), (one.destination_id), (one.source_id || '>' || one.destination_id), (gone.team_id)
    ) as k (key_id)
  where k.key_id is not null
  group by 1, 2, 3, 4
), ${addToRollups("counts", "$1")}
select count(*) = ${maxAtOnce} as more from gone`

/**
 * Adds the counts of batches to the rollups; returns whether there may be `more`. `slot`: the caller's own, so that no process
 * waits for another.
 */
export const addUpCommit = (
  slot: number
): { readonly statement: string; readonly parameters: ReadonlyArray<number> } => ({
  statement,
  parameters: [slot]
})
