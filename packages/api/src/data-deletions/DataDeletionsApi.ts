import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { DataDeletion } from "@tidegate/model/DataDeletion"
import { administering } from "@tidegate/model/Permission"
import { dataDeletionBody } from "@tidegate/resources/DataDeletion"
import { Authorization } from "../contract/Authorization.ts"
import { dataDeletion } from "../contract/Examples.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const query = Parameters.onlyTeam
const one = { params: Parameters.pathOf("dataDeletion"), query, success: DataDeletion }

/** Deletions of requests with all that came of them, by a filter or by a person's text. */
export class DataDeletionsApi extends HttpApiGroup.make("dataDeletions")
  .add(
    HttpApiEndpoint.get("list", "/data-deletions", {
      query,
      success: Schema.Struct({ data: Schema.Array(DataDeletion) })
    }).annotateMerge(
      operation({
        id: "listDataDeletions",
        permission: administering,
        summary: "List the deletions of data",
        description: "Returns the latest first. At most 500 are kept; each is the proof of what was deleted.",
        answer: { data: [dataDeletion] }
      })
    ),
    HttpApiEndpoint.post("create", "/data-deletions", {
      query,
      payload: dataDeletionBody.described,
      success: DataDeletion.pipe(HttpApiSchema.status(201))
    }).annotateMerge(
      operation({
        id: "createDataDeletion",
        permission: administering,
        summary: "Plan a deletion of data",
        description:
          "Looks for a text in everything that the team has stored of requests and runs, or selects requests by a filter, and counts the rows. Nothing is deleted before the plan is confirmed, within a day. A team has one deletion under way.",
        body: { text: "ada@example.com" },
        answer: { ...dataDeletion, stage: "searching", planned: {}, planned_total: 0, current_table: null },
        errors: ["INVALID_TIME_RANGE", "NOT_FOUND", "TEAM_LIMIT_REACHED"]
      })
    ),
    HttpApiEndpoint.get("retrieve", "/data-deletions/:id", one).annotateMerge(
      operation({
        id: "getDataDeletion",
        permission: administering,
        summary: "Retrieve a deletion of data",
        description: "Returns the plan, the progress, and in the end the proof of what was deleted.",
        answer: dataDeletion,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("run", "/data-deletions/:id/run", one).annotateMerge(
      operation({
        id: "runDataDeletion",
        permission: administering,
        summary: "Confirm a deletion of data",
        description:
          "Cannot be undone. What matches now is looked for anew; deliveries and runs of it are cancelled, and it is deleted. Repeating it changes nothing.",
        answer: { ...dataDeletion, stage: "searching", confirmed_at: dataDeletion.requested_at, current_table: null },
        errors: ["NOT_FOUND", "BULK_OPERATION_NOT_RUNNABLE"]
      })
    ),
    HttpApiEndpoint.post("cancel", "/data-deletions/:id/cancel", one).annotateMerge(
      operation({
        id: "cancelDataDeletion",
        permission: administering,
        summary: "Cancel a deletion of data",
        description: "What is deleted already does not come back. Repeating it changes nothing.",
        answer: {
          ...dataDeletion,
          stage: "cancelled",
          current_table: null,
          cancelable: false,
          finished_at: dataDeletion.requested_at
        },
        errors: ["NOT_FOUND", "BULK_OPERATION_NOT_CANCELABLE"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Deletions of data",
      description: "Deletions of requests with all that came of them, by a filter or by a person's text."
    })
  ) {}
