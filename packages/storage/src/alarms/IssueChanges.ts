import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { Issue } from "@tidegate/model/Issue"
import { issueOf } from "../reads/IssueReads.ts"

/**
 * Acknowledges or dismisses an issue. A resolved one stays as it is: it opens again with the next failure. Returns the issue as it is
 * stored.
 */
export const changeIssue = Effect.fnUntraced(function* (
  { by, id, team_id }: { readonly team_id: string; readonly id: string; readonly by: string | null },
  status: "acknowledged" | "dismissed"
): Effect.fn.Return<Issue, GatewayError | SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  yield* sql`update issues set status = ${status}, changed_by = ${by}
    where id = ${id} and team_id = ${team_id} and status not in ('resolved', ${status})`
  return yield* issueOf(team_id, id)
})
