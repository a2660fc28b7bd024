import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** The order in which the runners of a host take part, and which of them are busy: the next one takes part while all before it are. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`create table runner_loads (
    address text collate "C" primary key,
    standby boolean not null,
    joined_at timestamptz not null,
    busy_until timestamptz
  )`
})
