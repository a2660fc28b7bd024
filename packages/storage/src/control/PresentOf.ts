import type { SqlClient, Statement } from "effect/sql"

/**
 * That rows found by their ids are a team's and not deleted, said so that no index can take it: a plan that is made while a team has
 * few resources would go through the index of the names of what is not deleted, and through all of it when they have become many.
 */
export const presentOf = (sql: SqlClient.SqlClient, team_id: string): Statement.Fragment =>
  sql`case when deleted_at is null then team_id end = ${team_id}`
