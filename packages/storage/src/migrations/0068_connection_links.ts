import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"

/**
 * Which source and destination each connection has or had. Lists of the events of a source or destination read along the index of
 * connections, so events need no index of their own for either: each cost every event an entry.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const begin = idBound(prefixes.event, (yield* Clock.currentTimeMillis) - 3_600_000)
  for (const statement of [...table, ofEvents(""), ...trigger, ofConnections]) yield* sql.unsafe(statement)
  // Those of the older processes that run meanwhile.
  yield* sql.unsafe(ofEvents("where id >= $1"), [begin])
  for (const index of ["events_source", "events_destination"]) yield* sql.unsafe(`drop index ${index}`)
})

const table = [
  `create table connection_links (
    connection_id text collate "C" not null,
    source_id text collate "C" not null,
    destination_id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    primary key (connection_id, source_id, destination_id)
  )`,
  `create index connection_links_source on connection_links (source_id)`,
  `create index connection_links_destination on connection_links (destination_id)`,
  `create index connection_links_team on connection_links (team_id)`
]

const insert = "insert into connection_links (connection_id, source_id, destination_id, team_id)"

/** Only events know what a connection was linked to before. All are read, which may take minutes: before the trigger, which locks connections. */
const ofEvents = (since: string): string =>
  `${insert} select distinct connection_id, source_id, destination_id, team_id from events ${since} on conflict do nothing`

const ofConnections = `${insert} select id, source_id, destination_id, team_id from connections on conflict do nothing`

const trigger = [
  `create function connection_is_linked() returns trigger language plpgsql as $$
  begin
    insert into connection_links (connection_id, source_id, destination_id, team_id)
      values (new.id, new.source_id, new.destination_id, new.team_id) on conflict do nothing;
    return null;
  end $$`,
  `create trigger connection_is_linked after insert or update of source_id, destination_id on connections
    for each row execute function connection_is_linked()`
]
