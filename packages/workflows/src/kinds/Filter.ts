import { DetachedFilter } from "@tidegate/model/Rule"
import { Schema } from "effect"
import { type Evaluate, memberOf, type Parts, stepKind } from "../StepKind.ts"

/** Goes on only where its conditions hold, its own or a stored filter's. What does not match is no failure. */
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
  inputs: [],
  ports: () => ["matched"],
  portRequired: false,
  portsOf: (output) => (memberOf(output, "matched") === false ? [] : ["matched"]),
  *compile(step, config, compiler): Parts<Evaluate> {
    const { conditions } = config
    if (step.resource_id !== null) {
      for (const member of Object.keys(config)) {
        compiler.issue("STEP_CONFIG_INVALID", `config.${member}`, "has no effect where resource_id names a filter")
      }
      // They are pinned when a run begins: whoever compiles it for that has them.
      const holds = yield* compiler.filter(step.resource_id)
      return holds === null ? null : ({ context }) => matched(holds(context))
    }
    if (conditions === undefined) {
      compiler.issue("RESOURCE_REQUIRED", "config.conditions", "a filter needs conditions, or resource_id")
      return null
    }
    const holds = yield* compiler.condition(conditions, "config.conditions")
    return ({ context }) => matched(holds(context))
  }
})

/** What comes of a filter, wherever its conditions came from. */
export const matched = (matched: boolean) => ({
  kind: "succeeded" as const,
  output: { matched },
  ports: matched ? ["matched"] : []
})
