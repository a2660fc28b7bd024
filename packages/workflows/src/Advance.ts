import type { Json } from "@tidegate/model/Rule"
import { type Effect, type Lists, perform } from "./Inputs.ts"
import { deciding, type Facts, type Occurrence, type RunState } from "./Run.ts"
import type { SecretTexts } from "./SecretTexts.ts"
import type { Resumable, Time } from "./StepKind.ts"
import type { Workflow } from "./Workflow.ts"

/** What came of an occurrence, as far as nobody else is needed. */
export interface Advanced {
  readonly state: RunState
  /** What others have to carry out: nothing of it has begun. */
  readonly effects: ReadonlyArray<Effect>
  /** What the steps were given that were begun, by their position; of one that runs for a list, the last element's. */
  readonly inputs: ReadonlyMap<number, { readonly [input: string]: Json }>
}

/**
 * Takes a run on from what occurred, until all that is under way waits, or has to leave the process: steps that follow each other within it
 * are one advance, and one commit. What comes of it follows from its arguments alone. `texts` learns what is secret in what steps give.
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
  let decision = yield* deciding(workflow, facts, state, occurrence, time.now)
  const begun = [...decision.starts]
  for (let next = 0; next < begun.length; next++) {
    const start = begun[next]!
    const performed = yield* perform(workflow, facts, decision.state, start, time, texts, lists)
    if (performed.kind === "effect") {
      inputs.set(start.step, performed.effect.inputs.values)
      effects.push(performed.effect)
    } else {
      if (performed.inputs !== undefined) inputs.set(start.step, performed.inputs)
      decision = yield* deciding(workflow, facts, decision.state, performed.occurrence, time.now)
      begun.push(...decision.starts)
    }
    yield
  }
  return { state: decision.state, effects, inputs }
}
