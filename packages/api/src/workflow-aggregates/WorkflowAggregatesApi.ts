import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { administering } from "@tidegate/model/Permission"
import { source } from "@tidegate/resources/Source"
import { workflow } from "@tidegate/resources/Workflow"
import { aggregateExample, WorkflowAggregate, WorkflowAggregateInput } from "@tidegate/resources/WorkflowAggregate"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Workflows together with their source and actions. */
export class WorkflowAggregatesApi extends HttpApiGroup.make("workflowAggregates")
  .add(
    HttpApiEndpoint.put("save", "/workflows/aggregate", {
      query: Parameters.onlyTeam,
      payload: WorkflowAggregateInput,
      success: WorkflowAggregate
    }).annotateMerge(
      operation({
        id: "saveWorkflowAggregate",
        permission: administering,
        summary: "Save a workflow and its source at once",
        description:
          "Everything is written, or nothing. The source is created, or named by `source_id`. With `workflow_id` that workflow is changed; otherwise one is created.",
        body: aggregateExample as never,
        answer: {
          workflow: workflow.example.record,
          source: source.example.record,
          actions: [],
          created: { workflow: true, source: true, actions: [] }
        },
        errors: [
          "NOT_FOUND",
          "RESOURCE_ALREADY_EXISTS",
          "RULE_INVALID",
          "LIMIT_EXCEEDED",
          "WORKFLOW_GRAPH_INVALID",
          "WORKFLOW_NOT_EXECUTABLE",
          "workflow_conflict"
        ]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Workflow aggregates", description: "Workflows together with their sources." })
  ) {}
