import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Which source and destination each connection has or had. Lists of the events of a source or destination read along the index of
 * connections, so events need no index of their own for either: each cost every event an entry.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create table connection_links (
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    destination_id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    primary key (connection_id, source_id, destination_id)
  )`,
  `create index connection_links_source on connection_links (source_id)`,
  `create index connection_links_destination on connection_links (destination_id)`,
  `create index connection_links_team on connection_links (team_id)`,

  `create function connection_is_linked() returns trigger language plpgsql as $$
  begin
    insert into connection_links (connection_id, source_id, destination_id, team_id)
      values (new.id, new.source_id, new.destination_id, new.team_id) on conflict do nothing;
    return null;
  end $$`,
  `create trigger connection_is_linked after insert or update of source_id, destination_id on connections
    for each row execute function connection_is_linked()`,

  `insert into connection_links (connection_id, source_id, destination_id, team_id)
    select id, source_id, destination_id, team_id from connections`,
  // Only events know what a connection was linked to before: they are read once.
  `insert into connection_links (connection_id, source_id, destination_id, team_id)
    select distinct connection_id, source_id, destination_id, team_id from events on conflict do nothing`,

  `drop index events_source`,
  `drop index events_destination`
]
