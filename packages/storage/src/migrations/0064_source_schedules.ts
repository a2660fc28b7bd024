import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Sources whose requests are made by a schedule. The previous version makes none, and a new process makes up for what was due. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // The name of a type that a team may have chosen for an unknown vendor before the gateway used it.
  `update sources set type = 'WEBHOOK', version = version + 1 where type = 'CRON'`,

  // A row for each enabled source of type CRON. "due_at": its next time that has made no request; null: there is none.
  `create table source_schedules (
    source_id text collate "C" primary key references sources (id),
    team_id text collate "C" not null references teams (id),
    due_at timestamptz
  ) with (fillfactor = 70)`,
  `create index source_schedules_due on source_schedules (due_at) where due_at is not null`,
  `create index source_schedules_team on source_schedules (team_id)`
]
