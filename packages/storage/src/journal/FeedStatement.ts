/**
 * A part of a statement: notes for those who follow events that these rows, each with `id` and `team_id`, are stored by this transaction: one row a
 * team. It has the id of its first event, by which it goes with the events' day. `single`: there is one row.
 */
export const writeFeed = (rows: string, single = false): string =>
  single
    ? `insert into event_feed (id, team_id, event_ids) select 'fed_' || substr(id, 5), team_id, array[id] from ${rows}`
    : `insert into event_feed (id, team_id, event_ids)
    select 'fed_' || substr(min(id), 5), team_id, array_agg(id) from ${rows} group by team_id`
