import type { SqlClient, Statement } from "effect/sql"
import type { RequestStatus } from "@tidegate/model/Request"
import * as Columns from "../journal/Columns.ts"

type Fragment = Statement.Fragment

/** What a list of requests is narrowed to. Empty lists and undefined narrow nothing. */
export interface RequestFilter {
  readonly status: RequestStatus | undefined
  readonly verified: boolean | undefined
  readonly sources: ReadonlyArray<string>
  readonly connections: ReadonlyArray<string>
  readonly operation: string | undefined
  readonly isRetry: boolean | undefined
  readonly retryKind: "single" | "bulk" | undefined
  readonly rejectionCauses?: ReadonlyArray<string> | undefined
  readonly search: string | undefined
}

/** What an index may tell of a condition. */
export type Covered = "operation" | "sources" | "status" | "retries"

/** Conditions of a filter that stand on a request's own row; the search by external id and the connections do not. */
export const conditions = (
  sql: SqlClient.SqlClient,
  filter: RequestFilter
): ReadonlyArray<readonly [name: Covered | null, Fragment]> => {
  const { isRetry, operation, rejectionCauses = [], retryKind, sources, status, verified } = filter
  const all: Array<readonly [name: Covered | null, Fragment]> = []
  if (operation !== undefined) all.push(["operation", sql`r.retry_operation_id = ${operation}`])
  if (sources.length > 0) all.push(["sources", sql`r.source_id = any(${Columns.text(sources)})`])
  if (status !== undefined) all.push(["status", sql`r.status = ${status}`])
  if (verified !== undefined) all.push([null, sql`r.verified = ${verified}`])
  if (isRetry !== undefined) {
    all.push([isRetry ? "retries" : null, sql.literal(`r.retry_kind is ${isRetry ? "not " : ""}null`)])
  }
  if (retryKind !== undefined) all.push([null, sql`r.retry_kind = ${retryKind}`])
  // The status for the index over what was rejected.
  if (rejectionCauses.length > 0) {
    all.push([null, sql`r.status = 'rejected' and r.rejection_cause = any(${Columns.text(rejectionCauses)})`])
  }
  return all
}

/** Whether it asks for rejected requests alone. */
export const isOfRejected = ({ rejectionCauses = [], status }: RequestFilter): boolean =>
  status === "rejected" || (status === undefined && rejectionCauses.length > 0)
