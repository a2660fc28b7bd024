/*
 * A failed run whose workflow or team names an on-failure workflow is an arrival for its own workflow, which begins a run of that one
 * (`workflows/FailureRuns.ts`). Only batches in which a run has failed write this.
 */

/**
 * The on-failure workflow of a workflow and its team. A workflow that has the setting has that one, or none if the setting says so. A workflow
 * is not its own.
 */
export const onFailureOf = (workflow: string, team: string): string =>
  `nullif(case when jsonb_typeof(${workflow}.triggers -> 'on_failure') = 'object'
    then ${workflow}.triggers #>> '{on_failure,workflow_id}' else ${team}.on_failure_workflow_id end, ${workflow}.id)`

/** A part of the statement of runs: the failed ones among `ids`, except those that have begun because another run failed. */
export const tellFailures = (ids: string): string =>
  `insert into workflow_arrivals (workflow_id, about, team_id, shard, due_at, expires_at)
  select m.workflow_id, 'failed/' || m.id, m.team_id, q.shard, m.at, now() + interval '31 days'
  from moved m
    cross join lateral (select id, triggers from workflows where id = m.workflow_id and deleted_at is null limit 1) w
    cross join lateral (select on_failure_workflow_id from teams where id = m.team_id limit 1) t
    cross join lateral (select shard from workflow_queue where run_id = m.id limit 1) q
  where m.id = any(${ids}) and m.trigger is distinct from 'failure' and ${onFailureOf("w", "t")} is not null
  on conflict (workflow_id, about) do update set due_at = excluded.due_at`
