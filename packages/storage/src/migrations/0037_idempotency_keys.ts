import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * The answers of calls by their `Idempotency-Key`, kept for a day. `answer` is encrypted, because some answers contain a secret that is
 * shown only once. A row without a `status` belongs to a call under way: until `held_until` no other process may carry it out. The last
 * index is for the list of a team's shares.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table idempotency_keys (
    id text collate "C" primary key,
    team_id text collate "C" not null references teams (id),
    fingerprint text collate "C" not null,
    hand text collate "C" not null,
    begun_at timestamptz not null,
    held_until timestamptz not null,
    status int2,
    answer text,
    bytes int4 not null default 0,
    expires_at timestamptz not null
  )`
  yield* sql`create index idempotency_keys_team on idempotency_keys (team_id) include (bytes, expires_at)`
  yield* sql`create index idempotency_keys_expires on idempotency_keys (expires_at)`
  yield* sql`create index request_shares_listed on request_shares (team_id, created_at desc, id desc)`
})
