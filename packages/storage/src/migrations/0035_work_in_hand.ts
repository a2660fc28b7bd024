import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * What processes have in hand that may have killed one: a row while it is worked at, which an unclean end leaves behind. `ends`: those of processes that had
 * it, beside others once, then alone. `process` is empty while nobody has it. And the processes, by which one finds out that another has died.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table processes (
    id text collate "C" primary key,
    seen_at timestamptz not null
  )`
  yield* sql`create table work_in_hand (
    kind text collate "C" not null,
    id text collate "C" not null,
    team_id text collate "C" not null references teams (id),
    process text collate "C" not null,
    alone boolean not null default false,
    ends int2 not null default 0,
    expires_at timestamptz not null,
    primary key (kind, id)
  ) with (fillfactor = 70)`
  yield* sql`create index work_in_hand_expires on work_in_hand (expires_at)`
})
