import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { prefixes } from "@tidegate/model/Ids"
import { type StoredHead, storedHeaders } from "@tidegate/model/Message"
import { shownHeaders } from "@tidegate/verification/PresentedPlaces"
import { retentionDefaults } from "../retention/Retention.ts"

/**
 * Inputs that belong to runs. A run that a stored request did not begin has an input of its own, and its `request_id` is its own id. So a
 * run reads either a request or its input, and the prefix of that id says which.
 */

/** The input of a run, in the form of a stored request. It has no encrypted credentials: headers with credentials are masked when it is stored. */
export interface RunInput extends StoredHead {
  readonly body: Uint8Array
  /** When it arrived. */
  readonly ingested_at: Date
}

/** Whether `request_id` of a run is the id of an input, and not of a request. */
export const isOwnInput = (requestId: string): boolean => requestId.startsWith(prefixes.workflowRun)

/**
 * Stores the input of a run. The caller inserts the run in the same transaction, with the run's id as its `request_id`. The input is
 * kept as long as the team keeps payloads, and is removed with its run.
 */
export const insertRunInput = Effect.fnUntraced(function* (
  team: string,
  runId: string,
  { body, headers, ingested_at, method, path, query }: RunInput
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const masked = JSON.stringify(shownHeaders(storedHeaders({ method, path, query, headers })))
  yield* sql`
    insert into workflow_inputs (run_id, team_id, method, path, query, headers, body, body_size, ingested_at, expires_at)
    select ${runId}, t.id, ${method}, ${path}, ${query}, ${masked}, ${body}, ${body.length}::int4, ${ingested_at}::timestamptz,
      date_trunc('day', now())
        + (coalesce(t.payload_retention_days, ${retentionDefaults.payloadDays}) + 1) * interval '1 day'
    from teams t where t.id = ${team}`
})
