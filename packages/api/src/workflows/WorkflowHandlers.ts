import { Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { prefixes } from "@tidegate/model/Ids"
import { WorkflowStatus } from "@tidegate/model/Workflow"
import { RunStatus } from "@tidegate/model/WorkflowRun"
import { stepRetryBody } from "@tidegate/resources/StepRetryInput"
import { workflow } from "@tidegate/resources/Workflow"
import * as RunDetail from "@tidegate/storage/reads/RunDetail"
import * as RunReads from "@tidegate/storage/reads/RunReads"
import { clearRuns } from "@tidegate/storage/workflows/RunHistory"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf, reader } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { listing } from "../handlers/Listing.ts"
import { pageOf, searchOf, statesOf, valuesOf } from "../handlers/ListInput.ts"
import { handle } from "../handlers/Resource.ts"
import { warningsOf } from "./DefinitionWarnings.ts"

type Query = Schema.Struct.Type<typeof Lists.workflows.query>

/** What a list of workflows is narrowed to. */
const narrowed = Effect.fnUntraced(function* (query: Query) {
  const status = yield* statesOf(query.status, WorkflowStatus.literals)
  const search = yield* searchOf(query)
  return {
    among: { status, source_id: yield* valuesOf("source_id", query.source_id) },
    ...(search === undefined ? {} : { search })
  }
})

export const layer = HttpApiBuilder.group(
  Api,
  "workflows",
  Effect.fnUntraced(function* (handlers) {
    const [store, client] = [yield* Workflows, yield* WorkflowEntity.client]
    const reading = yield* reader
    const { owner } = ownersOf(prefixes.workflow, "workflow", client)
    const handled = yield* handle(handlers, workflow, Lists.workflows, store, client, {
      narrowed,
      warningsOf: (workflow) => warningsOf(store, workflow)
    })
    return handled
      .handle(
        "runs",
        listing(({ params, query }) =>
          Effect.gen(function* () {
            const { id: team } = yield* CurrentTeam
            const statuses = yield* statesOf(query.status, RunStatus.literals)
            const page = yield* pageOf(Lists.workflowRuns, query, { team, workflow: params.id, statuses })
            return yield* reading(RunReads.list(team, params.id, statuses, page))
          })
        )
      )
      .handle("run", ({ params, query }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) =>
          reading(RunDetail.get(team, params.id, params.runId, query.include_previews ?? false))
        )
      )
      .handleRaw("retryStep", ({ params, request }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { step_id } = yield* Effect.fromResult(stepRetryBody.judge(yield* readJsonObject(request)))
          // Made here, so that a command that arrives twice retries once.
          const retry_id = yield* idOfCall(prefixes.stepRetry)
          const to = yield* owner(params.id)
          return yield* askOwner(to.RetryStep({ team_id, run_id: params.runId, step_id, retry_id }))
        })
      )
      .handle("clearRuns", ({ params }) =>
        Effect.flatMap(CurrentTeam, ({ id: team }) => reading(clearRuns(team, params.id)))
      )
      .handle("activity", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          const filter = {
            statuses: yield* statesOf(query.status, RunStatus.literals),
            sources: yield* valuesOf("source_id", query.source_id, query.source),
            search: yield* searchOf(query)
          }
          const page = yield* pageOf(Lists.workflowActivity, query, { team, ...filter })
          return yield* reading(RunReads.activity(team, filter, page))
        })
      )
  })
)
