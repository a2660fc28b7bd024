import { Clock, Effect } from "effect"
import { Ingress } from "@tidegate/model/Ingress"
import { action } from "@tidegate/resources/Action"
import { source } from "@tidegate/resources/Source"
import { changeStep, type StepChange } from "@tidegate/resources/StepChange"
import { workflow } from "@tidegate/resources/Workflow"
import type { AggregateMessage } from "@tidegate/resources/WorkflowAggregate"
import { publishDraft } from "@tidegate/storage/workflows/Drafts"
import { saveAggregate } from "@tidegate/storage/workflows/WorkflowAggregates"
import { Workflows } from "@tidegate/storage/workflows/Workflows"
import { commandOf } from "../Actor.ts"

/** Saves a workflow together with its source and its actions. Each body has been validated by itself. */
export const save = Effect.fnUntraced(function* (
  id: string,
  { input, ...asked }: Parameters<typeof commandOf>[0] & { readonly input: AggregateMessage }
) {
  const situation = { now: new Date(yield* Clock.currentTimeMillis), ingress: yield* Ingress }
  const made =
    input.source === null
      ? null
      : {
          id: input.source.id,
          fields: yield* Effect.fromResult(source.create(input.source.input, { ...situation, id: input.source.id }))
        }
  const written =
    input.write === null
      ? { change: workflow.change(input.patch ?? {}, { ...situation, id }) }
      : { made: yield* Effect.fromResult(workflow.create(input.write, { ...situation, id })) }
  const actions = yield* Effect.forEach(input.actions, ({ id, input, ref }) =>
    Effect.map(Effect.fromResult(action.create(input, { ...situation, id })), (fields) => ({ id, ref, fields }))
  )
  return yield* saveAggregate(asked.team_id, id, { source: made, actions, workflow: written }, commandOf(asked))
})

const situationOf = Effect.fnUntraced(function* (id: string) {
  return { id, now: new Date(yield* Clock.currentTimeMillis), ingress: yield* Ingress }
})

type Asked = Parameters<typeof commandOf>[0]

/** Changes or removes one step. */
export const changeOneStep = Effect.fnUntraced(function* (
  id: string,
  { input, step_id, ...asked }: Asked & { readonly step_id: string; readonly input: StepChange }
) {
  const change = changeStep(step_id, input, yield* situationOf(id))
  return yield* (yield* Workflows).update(asked.team_id, id, change, commandOf(asked))
})

/** Makes the draft the next version. */
export const publish = Effect.fnUntraced(function* (
  id: string,
  { version, ...asked }: Asked & { readonly version: number | null }
) {
  return yield* publishDraft(asked.team_id, id, version, yield* situationOf(id), commandOf(asked))
})
