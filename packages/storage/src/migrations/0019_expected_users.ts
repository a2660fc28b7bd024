import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Members who have not signed in yet, and an index to count the shares of a team. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // Such a user has no subject. The first person who signs in with this address, verified, becomes this user.
  yield* sql`alter table users alter column subject drop not null`
  yield* sql`create unique index users_expected on users (issuer, email) where subject is null`
  yield* sql`create index users_email on users (lower(email))`
  yield* sql`create index request_shares_team on request_shares (team_id)`
})
