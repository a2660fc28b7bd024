import type { Json } from "@tidegate/model/Rule"
import { type Effect, type Lists, perform } from "./Inputs.ts"
import { deciding } from "./Run.ts"
import type { Facts, Occurrence, RunState } from "./RunState.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Resumable, Time } from "./StepKind.ts"
import type { Workflow } from "./Workflow.ts"

/** The result of an occurrence, up to where others are needed. */
export interface Advanced {
  readonly state: RunState
  /** Steps for others to carry out; none of them has begun. */
  readonly effects: ReadonlyArray<Effect>
  /** The inputs of the steps that were started, by their position; for a step that runs for a list, the last element's. */
  readonly inputs: ReadonlyMap<number, { readonly [input: string]: Json }>
}

/**
 * Continues a run after an occurrence, until every step under way waits or has to leave the process. Steps that follow each other
 * within the process are one advance and one commit. The result depends only on the arguments. `texts` collects the secrets in
 * the outputs of steps.
 */
export function* advance(
  workflow: Workflow,
  facts: Facts,
  state: RunState,
  occurrence: Occurrence,
  time: Time,
  texts: SecretTexts
): Resumable<Advanced> {
  const inputs = new Map<number, { readonly [input: string]: Json }>()
  const effects: Array<Effect> = []
  const lists: Lists = new Map()
  const first = deciding(workflow, facts, state, occurrence, time.now)
  let decision = "starts" in first ? first : yield* first
  const begun = [...decision.starts]
  for (let next = 0; next < begun.length; next++) {
    const start = begun[next]!
    const performed = yield* perform(workflow, facts, decision.state, start, time, texts, lists)
    if (performed.kind === "effect") {
      inputs.set(start.step, performed.effect.inputs.values)
      effects.push(performed.effect)
    } else {
      if (performed.inputs !== undefined) inputs.set(start.step, performed.inputs)
      const decided = deciding(workflow, facts, decision.state, performed.occurrence, time.now)
      decision = "starts" in decided ? decided : yield* decided
      begun.push(...decision.starts)
    }
    yield
  }
  return { state: decision.state, effects, inputs }
}
