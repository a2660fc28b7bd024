import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { DeletedWorkflowValue, WorkflowValue, WorkflowValueKeys } from "@tidegate/model/WorkflowValue"
import { at } from "@tidegate/resources/ExampleIds"
import { example, workflowValueBody } from "@tidegate/resources/WorkflowValueInput"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

const shown = { key: "orders", updated_at: at, expires_at: "2026-01-02T00:00:00.000Z" }

const one = { params: Parameters.workflowValuePath, query: Parameters.onlyTeam }

/** Values that steps of a workflow keep between its runs. */
export class WorkflowValuesApi extends HttpApiGroup.make("workflowValues")
  .add(
    HttpApiEndpoint.get("keys", "/workflows/:id/values", {
      params: Parameters.pathOf("workflow"),
      query: Parameters.onlyTeam,
      success: WorkflowValueKeys
    }).annotateMerge(
      operation({
        id: "listWorkflowValueKeys",
        permission: notByProjectKeys(reading),
        summary: "List the keys of a workflow's values",
        description: "All keys that are stored and have not expired, without their values.",
        answer: { keys: [shown] },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.get("get", "/workflows/:id/values/:key", { ...one, success: WorkflowValue }).annotateMerge(
      operation({
        id: "getWorkflowValue",
        permission: notByProjectKeys(reading),
        summary: "Read a value of a workflow",
        description: "The value as its steps have stored it.",
        answer: { ...shown, value: example.value },
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.put("set", "/workflows/:id/values/:key", {
      ...one,
      payload: workflowValueBody.described,
      success: WorkflowValue
    }).annotateMerge(
      operation({
        id: "setWorkflowValue",
        permission: administering,
        summary: "Store a value of a workflow",
        description: "Steps of kind `store` read it from then on. It replaces a value with the same key.",
        body: example,
        answer: { ...shown, value: example.value },
        errors: ["NOT_FOUND", "LIMIT_EXCEEDED"]
      })
    ),
    HttpApiEndpoint.delete("delete", "/workflows/:id/values/:key", {
      ...one,
      success: DeletedWorkflowValue
    }).annotateMerge(
      operation({
        id: "deleteWorkflowValue",
        permission: administering,
        summary: "Delete a value of a workflow",
        description: "Its steps find no value with this key from then on.",
        answer: { key: "orders", deleted: true },
        errors: ["NOT_FOUND"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Workflow values",
      description: "Values that steps of a workflow keep between its runs."
    })
  ) {}
