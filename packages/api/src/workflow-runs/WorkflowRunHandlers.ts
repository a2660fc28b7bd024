import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { maxWorkflowTest, maxWorkflowValues } from "@tidegate/model/BodyLimits"
import { prefixes } from "@tidegate/model/Ids"
import { judgeRerun } from "@tidegate/resources/RerunInput"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "workflowRuns",
  Effect.fnUntraced(function* (handlers) {
    const { owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)
    return handlers
      .handle("cancelRun", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const to = yield* owner(params.id)
          return yield* askOwner(to.CancelRun({ team_id, run_id: params.runId }))
        })
      )
      .handleRaw("rerun", ({ params, request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const written = yield* readJsonObject(request, maxWorkflowTest, maxWorkflowValues)
          const input = yield* Effect.fromResult(judgeRerun(written))
          // Made here, so that a command that arrives twice begins one run.
          const new_id = yield* idOfCall(prefixes.workflowRun)
          const to = yield* owner(params.id)
          return yield* askOwner(to.Rerun({ team_id, run_id: params.runId, new_id, input }))
        })
      )
  })
)
