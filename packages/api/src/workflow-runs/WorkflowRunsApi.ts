import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { CancelledRun, StartedRerun, WorkflowRun } from "@tidegate/model/WorkflowRun"
import { workflowRunBulkBody } from "@tidegate/resources/BulkOperation"
import { ids } from "@tidegate/resources/ExampleIds"
import { rerunExample, RerunInput } from "@tidegate/resources/RerunInput"
import { workflowRunExample, WorkflowRunInput } from "@tidegate/resources/WorkflowRunInput"
import { bulkOperations } from "../bulk-operations/BulkOperationsApi.ts"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"
import { run } from "../workflows/RunExamples.ts"

const cancelled = {
  id: ids.workflowRun,
  workflow_id: ids.workflow,
  status: "failed",
  outcome: "cancelled"
} as const

const started = {
  id: "wfr_01kak203r4g7b3k6j1h9f8e0mp",
  workflow_id: ids.workflow,
  workflow_version: 3,
  status: "queued",
  rerun_of: ids.workflowRun
} as const

/** Calls that begin runs, and that steer single runs or all that match a filter. */
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
    ),
    HttpApiEndpoint.get("retrieve", "/workflow_runs/:id", {
      params: Parameters.pathOf("run", ids.workflowRun),
      query: Parameters.onlyTeam,
      success: WorkflowRun
    }).annotateMerge(
      operation({
        id: "findWorkflowRun",
        permission: notByProjectKeys(reading),
        summary: "Retrieve a run by its id alone",
        description:
          "Returns the run of any workflow of the team, with the counts of its steps by status. `GET /workflows/{id}/runs/{runId}` returns its steps as well.",
        answer: run,
        errors: ["NOT_FOUND"]
      })
    ),
    HttpApiEndpoint.post("cancelRun", "/workflows/:id/runs/:runId/cancel", {
      params: Parameters.workflowRunPath,
      query: Parameters.onlyTeam,
      success: CancelledRun
    }).annotateMerge(
      operation({
        id: "cancelWorkflowRun",
        permission: administering,
        summary: "Cancel a run",
        description:
          "Ends a run that is queued, waits, or calls something, also while its workflow is paused. Calls under way are aborted; a target may have acted on them. Steps under way fail with RUN_CANCELLED, and the others are skipped. A cancelled run stays as it is.",
        answer: cancelled,
        errors: ["NOT_FOUND", "RUN_ENDED"]
      })
    ),
    HttpApiEndpoint.post("rerun", "/workflows/:id/runs/:runId/rerun", {
      params: Parameters.workflowRunPath,
      query: Parameters.onlyTeam,
      payload: RerunInput,
      success: StartedRerun.pipe(HttpApiSchema.status(202))
    }).annotateMerge(
      operation({
        id: "rerunWorkflow",
        permission: administering,
        summary: "Run again with the request of a run",
        description:
          "Begins a new run, by the run's own version, the current one or another one. `trigger` replaces parts of the request. All steps run, so everything is sent again.",
        body: rerunExample,
        answer: started,
        errors: ["NOT_FOUND", "WORKFLOW_NOT_EXECUTABLE", "PAYLOAD_UNAVAILABLE"]
      })
    ),
    ...bulkOperations("workflow_runs", workflowRunBulkBody)
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({
      title: "Workflow runs",
      description: "Begin a run, cancel it, or begin it again. Retry or cancel many."
    })
  ) {}
