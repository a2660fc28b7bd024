/**
 * A part of a statement. For streams of events it stores that these rows, each with `id` and `team_id`, are written by this
 * transaction: one row for each team. The row has the id of its first event, so it is removed together with the events of that
 * day. `single`: there is one row.
 */
export const writeFeed = (rows: string, single = false): string =>
  single
    ? `insert into event_feed (id, team_id, event_ids) select 'fed_' || substr(id, 5), team_id, array[id] from ${rows}`
    : `insert into event_feed (id, team_id, event_ids)
    select 'fed_' || substr(min(id), 5), team_id, array_agg(id) from ${rows} group by team_id`
