import type { SqlClient, Statement } from "effect/sql"

/**
 * A condition that rows found by id belong to a team and are not deleted, written so that no index can serve it. Otherwise a plan
 * made while a team has few resources would use the index of the names of existing rows, and would read all of it when they have
 * become many.
 */
export const presentOf = (sql: SqlClient.SqlClient, team_id: string): Statement.Fragment =>
  sql`case when deleted_at is null then team_id end = ${team_id}`
