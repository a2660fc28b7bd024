import type { SqlClient, Statement } from "effect/sql"
import type { RequestStatus } from "@tidegate/model/Request"
import * as Columns from "../journal/Columns.ts"

type Fragment = Statement.Fragment

/** The filter of a list of requests. Empty lists and undefined do not filter. */
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

/** The conditions that an index may cover. */
export type Covered = "operation" | "sources" | "status" | "retries"

/** The conditions of a filter on a request's own row; the search by external id and the connections are not among them. */
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
  // With the status, so that the index over rejected requests is used.
  if (rejectionCauses.length > 0) {
    all.push([null, sql`r.status = 'rejected' and r.rejection_cause = any(${Columns.text(rejectionCauses)})`])
  }
  return all
}

/** Whether only rejected requests match. */
export const isOfRejected = ({ rejectionCauses = [], status }: RequestFilter): boolean =>
  status === "rejected" || (status === undefined && rejectionCauses.length > 0)
