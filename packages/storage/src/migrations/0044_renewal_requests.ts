import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * When a provider has asked for the renewal of a subscription. Processes of the previous version shorten the subscription's life
 * instead, and leave the column as it is.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`alter table channel_subscriptions add column renew_at timestamptz`
})
