import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What calls have answered, by the `Idempotency-Key` of their callers, for a day. `answer` is sealed, because some answers show a secret this once. A row
 * without a `status` is of a call that is under way: until `held_until` nobody else may carry it out. And the order in which a team's shares are listed.
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
