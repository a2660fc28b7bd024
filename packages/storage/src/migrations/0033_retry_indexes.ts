import { Effect } from "effect"
import { SqlClient } from "effect/sql"

/**
 * Indexes over retries: requests and events that are retries, and the events that a bulk operation retried. They contain only these rare
 * rows, and none for a sender's request and its events.
 *
 * This migration creates them for future days only, which takes no time. `indexPartitions` builds those of existing days without blocking
 * writers; until then such a day is read without an index.
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
