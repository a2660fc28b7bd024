import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Members who have not signed in yet, and how many shares a team has. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Without a subject: whoever signs in first with that address, verified, takes their place.
  yield* sql`alter table users alter column subject drop not null`
  yield* sql`create unique index users_expected on users (issuer, email) where subject is null`
  yield* sql`create index users_email on users (lower(email))`
  yield* sql`create index request_shares_team on request_shares (team_id)`
})
