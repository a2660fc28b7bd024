import { DetachedFilter } from "@tidegate/model/Rule"
import { Result, Schema } from "effect"
import { requestGiven } from "../Envelope.ts"
import { objectOf } from "../OutputNames.ts"
import { type Context, envelopeInputs, type Evaluate, memberOf, type Resumable, stepKind } from "../StepKind.ts"

/**
 * Continues only when its conditions hold, its own or a stored filter's. Not matching is no failure. Its own conditions read the
 * run. A stored filter's conditions read a request, which may be the step's inputs; that stays so when the filter is deleted and
 * the step keeps its conditions.
 */
export const filterKind = stepKind({
  kind: "filter",
  config: Schema.Struct({
    conditions: Schema.optionalKey(Schema.Json),
    detached_from_filter: Schema.optionalKey(DetachedFilter)
  }),
  settings: [],
  resource: "flt_",
  callsAction: false,
  notTaken: "filtered",
  inline: true,
  inputs: ({ config, resource_id }) =>
    resource_id === null && config["detached_from_filter"] === undefined ? [] : envelopeInputs,
  output: objectOf("matched"),
  ports: ["matched"],
  portRequired: false,
  portsOf: (output) => (memberOf(output, "matched") === false ? [] : ["matched"]),
  *compile(step, config, compiler): Resumable<Evaluate> {
    const { conditions, detached_from_filter } = config
    if (step.resource_id !== null) {
      for (const member of Object.keys(config)) {
        compiler.issue("STEP_CONFIG_INVALID", `config.${member}`, "has no effect where resource_id names a filter")
      }
      // They are pinned when a run begins: the code that compiles for a run has loaded them.
      const holds = yield* compiler.filter(step.resource_id)
      return holds === null ? null : ofRequest(holds)
    }
    if (conditions === undefined) {
      compiler.issue("RESOURCE_REQUIRED", "config.conditions", "a filter needs conditions, or resource_id")
      return null
    }
    const holds = yield* compiler.condition(conditions, "config.conditions")
    return detached_from_filter === undefined ? ({ context }) => matched(holds(context)) : ofRequest(holds)
  }
})

/** Reads the request in the step's inputs; parts without an input are the trigger's. */
const ofRequest =
  (holds: (context: Context) => boolean): Evaluate =>
  ({ context, inputs }) => {
    const trigger = requestGiven(inputs, context.trigger)
    if (Result.isFailure(trigger)) return { kind: "failed", error: trigger.failure }
    return matched(holds({ ...context, trigger: trigger.success }))
  }

/** The result of a filter with either kind of conditions. */
export const matched = (matched: boolean) => ({
  kind: "succeeded" as const,
  output: { matched },
  ports: matched ? ["matched"] : []
})
