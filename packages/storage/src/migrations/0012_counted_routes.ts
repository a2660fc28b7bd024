import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * A request counts its pending routes as events from the beginning, so that it need not be written again when they become some. Those
 * that the version before has left are not `counted`, and are when they are settled.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table pending_routes add column counted boolean not null default false`
  // What is still pending is taken off by reads.
  yield* sql`create index pending_routes_request on pending_routes (request_id)`
})
