import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** Sources whose requests are messages of a stream of NATS. The name of their type may be one that a team has chosen for an unknown vendor. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update sources set type = 'WEBHOOK', version = version + 1 where type = 'NATS_JETSTREAM'`
})
