import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Indexes over what was retried: requests and events that are retries, and the events that a bulk operation retried. They hold what is rare, and nothing of
 * what a sender's request becomes.
 *
 * Here they are of days to come alone, which takes no time. Those of days that there are already are built beside their writers by
 * `indexPartitions`; until then such a day is read without.
 */
export default Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  for (const statement of statements) yield* sql.unsafe(statement)
})

const statements = [
  `create index requests_retried on only requests (team_id, id) where retry_kind is not null`,
  `create index events_retrying on only events (team_id, id) where retry_kind is not null`,
  `create index events_retried on only events (retry_operation_id, retry_parent_event_id)
    where retry_operation_id is not null and retry_parent_event_id is not null`
]
