import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Heavy work under way, which may crash a process. The row exists during the work; a crash leaves it behind. `ends`: number of crashes that
 * this work is suspected of. Crashes while other work was under way count as one in all; each crash while it ran `alone` counts. `process` is
 * empty while no process does the work. `processes` shows when each process was last alive, so that others notice its crash.
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
