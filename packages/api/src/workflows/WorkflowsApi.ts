import { HttpApiEndpoint, HttpApiSchema } from "effect/http-api"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { ClearedRuns, RetriedStep, WorkflowActivity, WorkflowRun, WorkflowRunDetail } from "@tidegate/model/WorkflowRun"
import { example, stepRetryBody } from "@tidegate/resources/StepRetryInput"
import { workflow } from "@tidegate/resources/Workflow"
import { groupOf } from "../contract/Group.ts"
import { operation } from "../contract/Operation.ts"
import * as Lists from "../contract/Lists.ts"
import * as Parameters from "../contract/Parameters.ts"
import * as Examples from "./RunExamples.ts"

/** Runs are for people and for the team's own key. */
const permission = notByProjectKeys(reading)

/** Graphs of steps that the requests of a source run through. */
export class WorkflowsApi extends groupOf(workflow, { list: Lists.workflows }, [
  HttpApiEndpoint.get("runs", "/workflows/:id/runs", {
    params: Parameters.pathOf("workflow"),
    query: Lists.workflowRuns.query,
    success: Lists.workflowRuns.answer(WorkflowRun).annotate({ identifier: "WorkflowRunList" })
  }).annotateMerge(
    operation({
      id: "listWorkflowRuns",
      permission,
      summary: "List the runs of a workflow, newest first",
      description: "Returns runs with the counts of their steps by status, in pages by cursor.",
      answer: Lists.workflowRuns.example(Examples.run),
      errors: ["NOT_FOUND", "INVALID_CURSOR", "INVALID_TIME_RANGE"]
    })
  ),
  HttpApiEndpoint.get("run", "/workflows/:id/runs/:runId", {
    params: Parameters.workflowRunPath,
    query: Parameters.workflowRun,
    success: WorkflowRunDetail
  }).annotateMerge(
    operation({
      id: "getWorkflowRun",
      permission,
      summary: "Retrieve a run of a workflow",
      description:
        "Returns the run with its version, its trigger, and its steps in the order in which they ran. Payloads are shown on request, without secrets.",
      answer: Examples.runDetail,
      errors: ["NOT_FOUND"]
    })
  ),
  HttpApiEndpoint.post("retryStep", "/workflows/:id/runs/:runId/retry", {
    params: Parameters.workflowRunPath,
    query: Parameters.onlyTeam,
    payload: stepRetryBody.described,
    success: RetriedStep.pipe(HttpApiSchema.status(202))
  }).annotateMerge(
    operation({
      id: "retryWorkflowStep",
      permission: administering,
      summary: "Retry a failed step of a run",
      description:
        "The run continues with its own version. Successful steps stay. The failed step runs again, and so do all steps after it.",
      body: example,
      answer: Examples.retried,
      errors: ["NOT_FOUND", "STEP_NOT_RETRYABLE", "RUN_ACTIVE", "WORKFLOW_NOT_EXECUTABLE", "RUN_PAYLOAD_EXPIRED"]
    })
  ),
  HttpApiEndpoint.delete("clearRuns", "/workflows/:id/runs", {
    params: Parameters.pathOf("workflow"),
    query: Parameters.onlyTeam,
    success: ClearedRuns
  }).annotateMerge(
    operation({
      id: "clearWorkflowRuns",
      permission: administering,
      summary: "Clear the history of a workflow",
      description:
        "Deletes finished runs with the data of their steps. Other runs stay. Repeat it while has_more is true. Counts do not change.",
      answer: Examples.cleared,
      errors: ["NOT_FOUND"]
    })
  ),
  HttpApiEndpoint.get("activity", "/workflow-activity", {
    query: Lists.workflowActivity.query,
    success: Lists.workflowActivity.answer(WorkflowActivity).annotate({ identifier: "WorkflowActivityList" })
  }).annotateMerge(
    operation({
      id: "listWorkflowActivity",
      permission,
      summary: "List the runs of all workflows, newest first",
      description: "Returns runs with their steps, of the last 24 hours by default, in pages by cursor.",
      answer: Lists.workflowActivity.example(Examples.activity),
      errors: ["INVALID_CURSOR", "INVALID_TIME_RANGE"]
    })
  )
]) {}
