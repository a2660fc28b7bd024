import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The number of each team's resources by type. The database counts them, so rows of the previous version are counted too. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table team_counts (
    team_id text collate "C" not null references teams (id),
    kind text not null,
    count bigint not null,
    primary key (team_id, kind)
  ) with (fillfactor = 50)`
  // Deleted rows are not counted. A source may move to another team.
  yield* sql`create function count_of_team() returns trigger language plpgsql as $$
    declare
      was boolean := tg_op <> 'INSERT' and old.deleted_at is null;
      there boolean := tg_op <> 'DELETE' and new.deleted_at is null;
    begin
      if was and there and old.team_id = new.team_id then
        return null;
      end if;
      if was then
        update team_counts set count = count - 1 where team_id = old.team_id and kind = tg_table_name;
      end if;
      if there then
        insert into team_counts as c values (new.team_id, tg_table_name, 1)
          on conflict (team_id, kind) do update set count = c.count + 1;
      end if;
      return null;
    end $$`
  for (const table of tables) yield* counted(table)
})

const tables = ["sources", "destinations", "connections", "transformations", "filters", "actions", "workflows"]

/** Counts the existing rows of a table, and all later changes. The migration must be its only writer meanwhile. Each resource's table is counted so. */
export const counted = Effect.fnUntraced(function* (table: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create trigger ${sql(`${table}_counted`)} after insert or delete or update of deleted_at, team_id on ${sql(table)}
    for each row execute function count_of_team()`
  yield* sql`insert into team_counts (team_id, kind, count)
    select team_id, ${sql.literal(`'${table}'`)}, count(*) from ${sql(table)} where deleted_at is null group by team_id`
})
