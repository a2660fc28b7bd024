import { Clock, Effect } from "effect"
import { Sharding } from "effect/cluster"
import { HttpApiBuilder } from "effect/http-api"
import { wakeUps } from "@tidegate/entities/dispatch/WakeUps"
import { shardOf } from "@tidegate/entities/Shards"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { maxWorkflowTest, maxWorkflowValues } from "@tidegate/model/BodyLimits"
import { fail } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { userOf } from "@tidegate/model/Session"
import { judgeRerun } from "@tidegate/resources/RerunInput"
import { judgeWorkflowRun } from "@tidegate/resources/WorkflowRunInput"
import * as RunReads from "@tidegate/storage/reads/RunReads"
import { beginOneRun } from "@tidegate/storage/workflows/BegunRuns"
import { idOfCall } from "../CallIds.ts"
import { bulkCalls } from "../bulk-operations/BulkHandlers.ts"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, type ById, ownersOf, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject, readJsonObjectIfAny } from "../handlers/JsonBody.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "workflowRuns",
  Effect.fnUntraced(function* (handlers) {
    const sharding = yield* Sharding.Sharding
    const { wakeWorkflow } = yield* wakeUps
    const reading = yield* reader
    const { owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)
    const bulk = yield* bulkCalls("workflow_runs")
    return handlers
      .handle("bulkOperations", bulk.list)
      .handleRaw("createBulkOperation", bulk.create)
      .handle("bulkOperation", bulk.retrieve)
      .handle("runBulkOperation", bulk.run)
      .handle("cancelBulkOperation", bulk.cancel)
      .handleRaw("begin", ({ params, request }: ById & WithBody) =>
        Effect.gen(function* () {
          const { caller, id: teamId } = yield* CurrentTeam
          const input = yield* Effect.fromResult(judgeWorkflowRun(yield* readJsonObjectIfAny(request)))
          const workflow = yield* reading(RunReads.workflowOf(teamId, params.id))
          // Made by the call's idempotency key, if it has one: a call that arrives twice begins one run.
          const id = yield* idOfCall(prefixes.workflowRun)
          const trigger = userOf(caller) === null ? "api" : "manual"
          const at = new Date(yield* Clock.currentTimeMillis)
          const run = {
            id,
            teamId,
            workflowId: params.id,
            shard: shardOf(sharding, params.id),
            trigger,
            input,
            at
          } as const
          yield* reading(beginOneRun(run))
          const begun = yield* reading(RunReads.one(teamId, params.id, id))
          if (begun === null) {
            return yield* fail("WORKFLOW_NOT_EXECUTABLE", `the workflow is ${workflow.status}`, { issues: [] })
          }
          yield* wakeWorkflow(params.id)
          return begun
        })
      )
      .handle("retrieve", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(RunReads.byId(team, params.id)))
      )
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
