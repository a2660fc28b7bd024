import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { administering } from "@tidegate/model/Permission"
import { WorkflowRun } from "@tidegate/model/WorkflowRun"
import { workflowRunExample, WorkflowRunInput } from "@tidegate/resources/WorkflowRunInput"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"
import { run } from "../workflows/RunExamples.ts"

/** Runs that a call begins. */
export class WorkflowRunsApi extends HttpApiGroup.make("workflowRuns")
  .add(
    HttpApiEndpoint.post("begin", "/workflows/:id/runs", {
      params: Parameters.pathOf("workflow"),
      query: Parameters.onlyTeam,
      payload: WorkflowRunInput,
      success: WorkflowRun.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "beginWorkflowRun",
        permission: administering,
        summary: "Begin a run of a workflow",
        description:
          "Begins a run by the current version. `trigger` takes the place of a request; without it the run has a POST with the body null. A paused workflow begins it when it goes on. With an Idempotency-Key a repeated call returns the same run.",
        body: workflowRunExample,
        bodyOptional: true,
        answer: Object.assign({}, run, {
          trigger_type: "api",
          status: "queued",
          outcome: null,
          error_code: null,
          error_message: null,
          error_step_id: null,
          succeeded_steps: 0,
          failed_steps: 0,
          pending_steps: 2,
          started_at: null,
          finished_at: null,
          duration_ms: null
        }),
        errors: ["NOT_FOUND", "WORKFLOW_NOT_EXECUTABLE"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(OpenApi.annotations({ title: "Workflow runs", description: "Runs of workflows that calls begin." })) {}
