import { Clock, Effect, type Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { prefixes } from "@tidegate/model/Ids"
import { runFilters } from "@tidegate/model/RecordFilter"
import { parseTime } from "@tidegate/model/Timestamp"
import { WorkflowStatus } from "@tidegate/model/Workflow"
import { RunStatus } from "@tidegate/model/WorkflowRun"
import { stepRetryBody } from "@tidegate/resources/StepRetryInput"
import { workflow } from "@tidegate/resources/Workflow"
import * as RunDetail from "@tidegate/storage/reads/RunDetail"
import type { RunFilter } from "@tidegate/storage/reads/RunNarrowing"
import * as RunReads from "@tidegate/storage/reads/RunReads"
import { clearRuns } from "@tidegate/storage/workflows/RunHistory"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { idOfCall } from "../CallIds.ts"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askOwner, ownersOf, reader, reporter } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { listing } from "../handlers/Listing.ts"
import { narrowingOf, pageOf, searchOf, statesOf, valuesOf } from "../handlers/ListInput.ts"
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

const timeOf = (
  path: string,
  text: string | undefined,
  now: number
): Effect.Effect<number | undefined, GatewayError> => {
  if (text === undefined || text === "") return Effect.succeed(undefined)
  const at = parseTime(text, now)
  return at === null
    ? Effect.fail(invalid([{ path, message: "must be ISO 8601, now, or now-<n><s|m|h|d>" }]))
    : Effect.succeed(at)
}

type RunsQuery =
  | Schema.Struct.Type<typeof Lists.workflowRuns.query>
  | Schema.Struct.Type<typeof Lists.workflowActivity.query>

/** A cursor stands for these times as they were written, because `now-1h` moves from one page to the next. */
const startedOf = ({ started_from, started_to }: RunsQuery) => ({ startedFrom: started_from, startedTo: started_to })

/** What a list of runs is narrowed to, beside their states. */
const runFilterOf = Effect.fnUntraced(function* (query: RunsQuery): Effect.fn.Return<RunFilter, GatewayError> {
  const now = yield* Clock.currentTimeMillis
  return {
    ...(yield* narrowingOf(runFilters, query)),
    startedFrom: yield* timeOf("started_from", query.started_from, now),
    startedTo: yield* timeOf("started_to", query.started_to, now)
  }
})

export const layer = HttpApiBuilder.group(
  Api,
  "workflows",
  Effect.fnUntraced(function* (handlers) {
    const [store, client] = [yield* Workflows, yield* WorkflowEntity.client]
    const reading = yield* reader
    const reporting = yield* reporter
    // A search in previews reads much.
    const readsFor = ({ text }: RunFilter) => (text === undefined ? reading : reporting)
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
            const filter = yield* runFilterOf(query)
            const narrowed = { team, workflow: params.id, statuses, ...filter, ...startedOf(query) }
            const page = yield* pageOf(Lists.workflowRuns, query, narrowed)
            return yield* readsFor(filter)(RunReads.list(team, params.id, statuses, page, filter))
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
            search: yield* searchOf(query),
            ...(yield* runFilterOf(query))
          }
          const page = yield* pageOf(Lists.workflowActivity, query, { team, ...filter, ...startedOf(query) })
          return yield* readsFor(filter)(RunReads.activity(team, filter, page))
        })
      )
  })
)
