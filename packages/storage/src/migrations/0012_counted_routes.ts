import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * A request counts its routing jobs as events from the beginning, so that its row is not written again when they become events. Routing
 * jobs of the previous version are not `counted`: they are counted when their results are committed.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table pending_routes add column counted boolean not null default false`
  // Reads subtract the jobs that are still pending.
  yield* sql`create index pending_routes_request on pending_routes (request_id)`
})
