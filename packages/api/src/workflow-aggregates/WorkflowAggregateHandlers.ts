import { randomUUID } from "node:crypto"
import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { WorkflowEntity } from "@tidegate/entities/Workflow/WorkflowProtocol"
import { maxSourceBody, maxWorkflowValues } from "@tidegate/model/BodyLimits"
import { newId, prefixes } from "@tidegate/model/Ids"
import { Ingress } from "@tidegate/model/Ingress"
import { judgeAggregate, warningsOfParts } from "@tidegate/resources/WorkflowAggregate"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { Api } from "../contract/Api.ts"
import { asked, askOwner, ownersOf, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { warningsOf } from "../workflows/DefinitionWarnings.ts"

/** The workflow's actor saves it together with its source. A new workflow goes the same way. */
export const layer = HttpApiBuilder.group(
  Api,
  "workflowAggregates",
  Effect.fnUntraced(function* (handlers) {
    const [ingress, store] = [yield* Ingress, yield* Workflows]
    const { fresh, owner } = ownersOf(prefixes.workflow, "workflow", yield* WorkflowEntity.client)
    return handlers.handleRaw("save", ({ request }: WithBody) =>
      Effect.gen(function* () {
        const written = yield* readJsonObject(request, maxSourceBody, maxWorkflowValues)
        const now = yield* Clock.currentTimeMillis
        const judged = judgeAggregate(written, (prefix) => newId(prefix, now), { now: new Date(now), ingress })
        const { message, workflow_id } = yield* Effect.fromResult(judged)
        const actor = workflow_id === null ? yield* fresh : yield* owner(workflow_id)
        const saved = yield* askOwner(actor.Save({ ...(yield* asked), command: randomUUID(), input: message }))
        const warnings = warningsOfParts(saved, yield* warningsOf(store, saved.workflow))
        return warnings.length === 0 ? saved : { ...saved, warnings }
      })
    )
  })
)
