import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { BulkOperation } from "@tidegate/model/BulkOperation"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { executing, reading } from "@tidegate/model/Permission"
import { bulkOperation } from "./Examples.ts"
import { operation } from "./Operation.ts"
import * as Parameters from "./Parameters.ts"

const BulkOperationList = Schema.Struct({ count: Schema.Int, models: Schema.Array(BulkOperation) })

/** The calls on the bulk operations of requests, or of events. */
export const bulkOperations = <const Of extends "requests" | "events", Body extends Schema.Codec<unknown, unknown>>(
  of: Of,
  body: { readonly described: Body; readonly example: Schema.Json }
) => {
  const Name = of === "requests" ? "Request" : "Event"
  const path = `/${of}/bulk_operations` as const
  const one = { params: Parameters.pathOf("bulkOperation", bulkOperation.id), query: Parameters.onlyTeam }
  const shown =
    of === "events" ? bulkOperation : { ...bulkOperation, type: "request_bulk_retry" as const, filter: requestFilter }
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
      query: Parameters.bulkOperations,
      success: BulkOperationList
    }).annotateMerge(
      operation({
        ...about(
          `list${Name}BulkOperations`,
          `List bulk operations of ${of}, newest first`,
          "One page, without a cursor.",
          []
        ),
        permission: reading,
        answer: { count: 1, models: [shown] }
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
          of === "events" ? "Retry all events that a filter finds" : "Replay all requests that a filter finds",
          "What it finds is written down first (PLANNED), then retried (RUNNING) at a pace that live traffic does not notice. At most 50 at a time.",
          ["INVALID_TIME_RANGE", "TEAM_LIMIT_REACHED"]
        ),
        permission: executing,
        body: body.example
      })
    ),
    HttpApiEndpoint.get("bulkOperation", `${path}/:id`, { ...one, success: BulkOperation }).annotateMerge(
      operation({
        ...about(`get${Name}BulkOperation`, "Retrieve a bulk operation", "With how far it has come.", ["NOT_FOUND"]),
        permission: reading
      })
    ),
    HttpApiEndpoint.post("cancelBulkOperation", `${path}/:id/cancel`, { ...one, success: BulkOperation }).annotateMerge(
      operation({
        ...about(
          `cancel${Name}BulkOperation`,
          "Cancel a bulk operation",
          "What it has queued is delivered all the same.",
          ["NOT_FOUND", "BULK_OPERATION_NOT_CANCELABLE"]
        ),
        permission: executing,
        answer: { ...shown, status: "CANCELLED", cancelable: false, finished_at: bulkOperation.created_at }
      })
    )
  ] as const
}

const { connection_id: _, ...rest } = bulkOperation.filter
const requestFilter = { ...rest, status: ["rejected"] }
