import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { BulkOperation, type BulkOf } from "@tidegate/model/BulkOperation"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { administering, executing, reading } from "@tidegate/model/Permission"
import { ids } from "@tidegate/resources/ExampleIds"
import { bulkOperation } from "../contract/Examples.ts"
import * as Lists from "../contract/Lists.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** The calls on the bulk operations of requests, or of events. */
export const bulkOperations = <const Of extends BulkOf, Body extends Schema.Codec<unknown, unknown>>(
  of: Of,
  body: { readonly described: Body; readonly example: Schema.Json }
) => {
  const { Name, changing, create, ended, filter, of: records, type } = said[of]
  const path = `/${of}/bulk_operations` as const
  const one = { params: Parameters.pathOf("bulkOperation", bulkOperation.id), query: Parameters.onlyTeam }
  const shown = { ...bulkOperation, type, filter }
  const about = <const Codes extends ReadonlyArray<ErrorCode>>(
    id: string,
    summary: string,
    description: string,
    errors: Codes
  ) => ({
    id,
    summary,
    description,
    answer: shown,
    errors
  })
  return [
    HttpApiEndpoint.get("bulkOperations", path, {
      query: Lists.bulkOperations.query,
      success: Lists.bulkOperations.answer(BulkOperation)
    }).annotateMerge(
      operation({
        ...about(
          `list${Name}BulkOperations`,
          `List bulk operations of ${records}, newest first`,
          "Returns pages by cursor.",
          ["INVALID_CURSOR"]
        ),
        permission: reading,
        answer: Lists.bulkOperations.example(shown)
      })
    ),
    HttpApiEndpoint.post("createBulkOperation", path, {
      query: Parameters.onlyTeam,
      payload: body.described,
      success: BulkOperation.pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        ...about(
          `create${Name}BulkOperation`,
          create,
          "The operation first stores what the filter finds (PLANNED). It then runs (RUNNING) at a pace that does not delay live traffic. If `confirm` is false, it shows its total_count and a sample, and waits for its confirmation for up to a day. A filter without conditions requires `all`. A team can have at most 50 operations under way.",
          ["INVALID_TIME_RANGE", "TEAM_LIMIT_REACHED"]
        ),
        permission: changing,
        body: body.example
      })
    ),
    HttpApiEndpoint.get("bulkOperation", `${path}/:id`, { ...one, success: BulkOperation }).annotateMerge(
      operation({
        ...about(`get${Name}BulkOperation`, "Retrieve a bulk operation", "Returns the operation with its progress.", [
          "NOT_FOUND"
        ]),
        permission: reading
      })
    ),
    HttpApiEndpoint.post("runBulkOperation", `${path}/:id/run`, { ...one, success: BulkOperation }).annotateMerge(
      operation({
        ...about(
          `run${Name}BulkOperation`,
          "Confirm a bulk operation",
          "Starts a planned operation, at once or when its plan is ready. Repeating it changes nothing.",
          ["NOT_FOUND", "BULK_OPERATION_NOT_RUNNABLE"]
        ),
        permission: changing
      })
    ),
    HttpApiEndpoint.post("cancelBulkOperation", `${path}/:id/cancel`, { ...one, success: BulkOperation }).annotateMerge(
      operation({
        ...about(`cancel${Name}BulkOperation`, "Cancel a bulk operation", ended, [
          "NOT_FOUND",
          "BULK_OPERATION_NOT_CANCELABLE"
        ]),
        permission: changing,
        answer: { ...shown, status: "CANCELLED", cancelable: false, finished_at: bulkOperation.created_at }
      })
    )
  ] as const
}

const { connection_id: _, ...rest } = bulkOperation.filter

const queued = "Events that it has queued already are still delivered."

/** The descriptions of the operations, by kind of records. */
const said = {
  requests: {
    Name: "Request",
    of: "requests",
    changing: executing,
    ended: queued,
    create: "Replay all requests that match a filter",
    type: "request_bulk_retry",
    filter: { ...rest, status: ["rejected"] }
  },
  events: {
    Name: "Event",
    of: "events",
    changing: executing,
    ended: queued,
    create: "Retry all events that match a filter, or cancel those that wait",
    type: "event_bulk_retry",
    filter: { ...bulkOperation.filter, resolved: false }
  },
  ignored_events: {
    Name: "IgnoredEvent",
    of: "ignored events",
    changing: executing,
    ended: queued,
    create: "Replay the requests of all ignored events that match a filter, each to the connection that ignored it",
    type: "ignored_event_bulk_retry",
    filter: { from: rest.from, to: rest.to, cause: ["TRANSFORMATION_FAILED"] }
  },
  workflow_runs: {
    Name: "WorkflowRun",
    of: "workflow runs",
    // As for a single run.
    changing: administering,
    ended: "Runs that it has queued already go on, and those that it has cancelled stay cancelled.",
    create: "Retry the failed steps of all runs that match a filter, or cancel those that have not ended",
    type: "workflow_run_bulk_retry",
    filter: { from: rest.from, to: rest.to, status: ["failed"], error_code: ["TIMEOUT"], workflow_id: [ids.workflow] }
  }
} as const
