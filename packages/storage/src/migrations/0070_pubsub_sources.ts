import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** A type of sources whose requests are the messages of a subscription. Its name may be one that a team has chosen for an unknown vendor. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update sources set type = 'WEBHOOK', version = version + 1 where type = 'GCP_PUBSUB'`
})
