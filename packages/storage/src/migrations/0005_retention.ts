import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** How long a team's data is kept, and the team of each pending row. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  // Null: the process's setting applies. "…_cleared_to": older rows of this team have been cleared one by one, in days that
  // other teams still keep.
  `alter table teams
    add column payload_retention_days integer check (payload_retention_days between 1 and 3650),
    add column record_retention_days integer check (record_retention_days between 1 and 3650),
    add column payloads_cleared_to timestamptz,
    add column records_cleared_to timestamptz`,

  // Null in rows of the previous version, until retention fills it in.
  `alter table deliveries add column team_id text collate "C"`,
  `alter table dedupe_keys add column team_id text collate "C"`
]
