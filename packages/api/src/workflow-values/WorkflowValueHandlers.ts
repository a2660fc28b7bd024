import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { fail, notFound } from "@tidegate/model/GatewayError"
import type { WorkflowValue } from "@tidegate/model/WorkflowValue"
import { judgeValueKey, workflowValueBody } from "@tidegate/resources/WorkflowValueInput"
import * as RunReads from "@tidegate/storage/reads/RunReads"
import { deleteKept, type KeptValue, listKept, readKept, setKept } from "@tidegate/storage/workflows/WorkflowValues"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { reader } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"

const shownOf = ({ expires_at, key, updated_at }: Omit<KeptValue, "value">) => ({
  key,
  updated_at: updated_at.toISOString(),
  expires_at: expires_at?.toISOString() ?? null
})

const whole = (kept: KeptValue): WorkflowValue => ({ ...shownOf(kept), value: kept.value })

export const layer = HttpApiBuilder.group(
  Api,
  "workflowValues",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    /** The values of a workflow of the team. */
    const valuesOf = Effect.fnUntraced(function* (workflow_id: string) {
      const { id: team_id } = yield* CurrentTeam
      yield* reading(RunReads.workflowOf(team_id, workflow_id))
      return { team_id, workflow_id }
    })
    const valueOf = Effect.fnUntraced(function* (workflow_id: string, key: string) {
      const kept = yield* reading(readKept(yield* valuesOf(workflow_id), key))
      return kept === null ? yield* notFound("workflow_value", key) : whole(kept)
    })
    return handlers
      .handle("keys", ({ params }) =>
        Effect.gen(function* () {
          return { keys: (yield* reading(listKept(yield* valuesOf(params.id)))).map(shownOf) }
        })
      )
      .handle("get", ({ params }) => valueOf(params.id, params.key))
      .handleRaw("set", ({ params, request }) =>
        Effect.gen(function* () {
          const { expires_in_seconds = null, value } = yield* Effect.fromResult(
            workflowValueBody.judge(yield* readJsonObject(request))
          )
          const of = yield* valuesOf(params.id)
          const key = yield* Effect.fromResult(judgeValueKey(params.key))
          const stored = yield* reading(setKept(of, key, value, expires_in_seconds))
          if (stored === "gone") return yield* notFound("workflow", params.id)
          if (stored === "full") return yield* fail("LIMIT_EXCEEDED", "the workflow keeps as many values as it may")
          return yield* valueOf(params.id, params.key)
        })
      )
      .handle("delete", ({ params }) =>
        Effect.gen(function* () {
          const isDeleted = yield* reading(deleteKept(yield* valuesOf(params.id), params.key))
          return isDeleted ? { key: params.key, deleted: true as const } : yield* notFound("workflow_value", params.key)
        })
      )
  })
)
