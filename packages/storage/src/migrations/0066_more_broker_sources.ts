import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/** More types of sources whose requests are messages of a broker. Their names may be ones that a team has chosen for an unknown vendor. */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update sources set type = 'WEBHOOK', version = version + 1 where type in ('NATS_JETSTREAM', 'AWS_SQS')`
})
