import { systemType } from "@tidegate/model/SystemSource"

/*
 * What goes wrong is written by the statement that stores it, in the same transaction, and only by batches in which something goes
 * wrong. A batch writes one row for each kind, subject and code. The alarms read and delete the rows (`alarms/Occurrences.ts`), so each
 * is counted once, even after a crash.
 *
 * Nothing is written of what follows from a system event. The events of a system source are left out here too, because a retry of
 * one may lack its mark.
 */

/** Ids that are kept of a batch, subject and code. */
const maxSamples = 5

const notOfSystem = (row: string): string =>
  `not exists (select from sources where sources.id = ${row}.source_id and sources.type = '${systemType}')`

const columns =
  "team_id, kind, subject_id, code, count, ended, response_status, samples, ended_samples, first_at, last_at"

/** The ids of a group, the latest first. */
const samples = (id: string, where = "true"): string =>
  `coalesce((array_agg(${id} order by ${id} desc) filter (where ${where}))[1:${maxSamples}], '{}')`

/** A part of the statement of attempts: the failed ones among `ids`, by destination and error code. */
export const writeFailedAttempts = (ids: string): string =>
  `insert into occurrences (${columns})
  select e.team_id, 'delivery', e.destination_id, coalesce(e.error_code, 'UNKNOWN'), count(*), count(*) filter (where e.state = 'FAILED'),
    max(e.status), ${samples("e.event_id")}, ${samples("e.event_id", "e.state = 'FAILED'")}, min(e.finished_at), max(e.finished_at)
  from e where e.event_id = any(${ids}) and not e.successful and ${notOfSystem("e")}
  group by e.team_id, e.destination_id, e.error_code`

/** A part of the statement of runs: the failed ones among `ids`, by workflow and error code. */
export const writeFailedRuns = (ids: string): string =>
  `insert into occurrences (${columns})
  select m.team_id, 'run', m.workflow_id, coalesce(m.error_code, 'UNKNOWN'), count(*), count(*), null::integer, ${samples("m.id")},
    '{}'::text[], min(m.at), max(m.at)
  from moved m where m.id = any(${ids}) and ${notOfSystem("m")}
  group by m.team_id, m.workflow_id, m.error_code`

/** The cause of the rejected requests that the statement of requests writes. */
export const unverified = "SOURCE_AUTH_FAILED"
