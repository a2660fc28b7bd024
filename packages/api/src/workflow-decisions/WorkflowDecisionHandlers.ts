import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { userOf } from "@tidegate/model/Session"
import { stepDecisionBody } from "@tidegate/resources/StepDecisionInput"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "workflowDecisions",
  Effect.fnUntraced(function* (handlers) {
    const { owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)
    return handlers.handleRaw("decide", ({ params, request }) =>
      Effect.gen(function* () {
        const { caller, id: team_id } = yield* CurrentTeam
        const given = yield* Effect.fromResult(stepDecisionBody.judge(yield* readJsonObject(request)))
        const to = yield* owner(params.id)
        return yield* askOwner(
          to.Decide({
            team_id,
            run_id: params.runId,
            step_id: params.stepId,
            approves: given.decision === "approve",
            comment: given.comment ?? null,
            user_id: userOf(caller)
          })
        )
      })
    )
  })
)
