import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { executing, notByProjectKeys } from "@tidegate/model/Permission"
import { StepDecision } from "@tidegate/model/WorkflowRun"
import { at, ids } from "@tidegate/resources/ExampleIds"
import { example, stepDecisionBody } from "@tidegate/resources/StepDecisionInput"
import { Authorization } from "../contract/Authorization.ts"
import { operation } from "../contract/Operation.ts"
import * as Parameters from "../contract/Parameters.ts"

/** Decisions that steps of runs wait for. */
export class WorkflowDecisionsApi extends HttpApiGroup.make("workflowDecisions")
  .add(
    HttpApiEndpoint.post("decide", "/workflows/:id/runs/:runId/steps/:stepId/decision", {
      params: Parameters.workflowRunStepPath,
      query: Parameters.onlyTeam,
      payload: stepDecisionBody.described,
      success: StepDecision
    }).annotateMerge(
      operation({
        id: "decideWorkflowStep",
        // Members may decide: who may not is a matter of the team. Project keys have no access to workflows.
        permission: notByProjectKeys(executing),
        summary: "Decide a step that waits for an approval",
        description:
          "The run continues from the step: by the port `out` when it is approved, otherwise by `rejected`. Of several decisions the first one counts.",
        body: example,
        answer: {
          run_id: ids.workflowRun,
          workflow_id: ids.workflow,
          step_id: "approved",
          decision: "approved",
          comment: example.comment,
          decided_by: "api_key",
          decided_by_user_id: null,
          decided_by_name: null,
          decided_at: at
        },
        errors: ["NOT_FOUND", "STEP_NOT_WAITING", "RUN_ACTIVE", "WORKFLOW_NOT_EXECUTABLE"]
      })
    )
  )
  .middleware(Authorization)
  .annotateMerge(
    OpenApi.annotations({ title: "Workflow decisions", description: "Decisions that steps of runs wait for." })
  ) {}
