import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Alerts of channels that somebody deals with. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  // "acknowledged_by": the user; null with a time: a key.
  yield* sql`alter table channel_alerts
    add column acknowledged_at timestamptz,
    add column acknowledged_by text collate "C"`
})
