import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The bearer tokens that destinations have obtained, and the consents that they wait for. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // "claim": the process that requests a token from the provider now; no other does so before "claimed_until". The state of a consent is
  // stored as its SHA-256 hash.
  yield* sql`create table destination_tokens (
    destination_id text collate "C" primary key references destinations (id),
    team_id text collate "C" not null references teams (id),
    held text,
    claim text,
    claimed_until timestamptz,
    consent text,
    state_hash text collate "C",
    consent_until timestamptz
  ) with (fillfactor = 70)`
})
