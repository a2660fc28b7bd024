import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Public bins: sources that need no account. They belong to a team without members until a user claims them. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`insert into teams (id, name, created_at) values ('tm_bins', 'Public bins', now()) on conflict do nothing`
  // The token is stored as its SHA-256 hash. "captured": number of stored requests; "minute_count" of them since "minute". A row stays when it is claimed.
  yield* sql`create table public_bins (
    source_id text collate "C" primary key references sources (id),
    team_id text collate "C" not null references teams (id),
    token_hash text collate "C" not null,
    captured integer not null default 0,
    minute timestamptz not null,
    minute_count integer not null default 0,
    expires_at timestamptz not null,
    claimed_at timestamptz,
    created_at timestamptz not null
  ) with (fillfactor = 70)`
  yield* sql`create index public_bins_unclaimed on public_bins (expires_at) where claimed_at is null`
})
