import { Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { type Context, type Evaluate, memberOf, noInputs, type Resumable, stepKind } from "../StepKind.ts"

const Path = Schema.Struct({
  key: Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/, { expected: "1 to 64 letters, digits, _ and -" })),
  name: Schema.optionalKey(Schema.String.check(Characters.upTo(155))),
  rule: Schema.Literals(["conditions", "always", "fallback"]),
  conditions: Schema.optionalKey(Schema.Json)
})

interface PathTest {
  readonly key: string
  readonly rule: (typeof Path.Type)["rule"]
  readonly holds: (context: Context) => boolean
}

const prefix = "path_"
const portOf = (key: string): string => `${prefix}${key}`

/**
 * Continues on every path whose conditions hold, or on the first of them (`evaluation`). `always` is taken in any case;
 * `fallback` when no path with conditions matched. When no path is taken, the step has succeeded and nothing follows.
 */
export const branchKind = stepKind({
  kind: "branch",
  config: Schema.Struct({
    evaluation: Schema.optionalKey(Schema.Literals(["all", "first"])),
    paths: Schema.Array(Path).check(Schema.isMinLength(1))
  }),
  settings: [],
  resource: null,
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: noInputs,
  output: objectOf("matched", "fallback"),
  ports: { each: "paths", key: "key", prefix },
  portRequired: true,
  portsOf: (output) => {
    const matched = memberOf(output, "matched")
    return Array.isArray(matched) ? matched.map((key) => portOf(String(key))) : []
  },
  *compile(_, { evaluation, paths }, compiler): Resumable<Evaluate> {
    if (paths.length > limits.paths) {
      compiler.issue("PATH_LIMIT_EXCEEDED", "config.paths", `a step has at most ${limits.paths} paths`)
    }
    const fallbacks = paths.filter(({ rule }) => rule === "fallback")
    if (fallbacks.length > 1) {
      compiler.issue("PATH_FALLBACK_MULTIPLE", "config.paths", "a step has at most one fallback path")
    }
    const first = evaluation === "first"
    if (first && fallbacks.length > 0 && paths.some(({ rule }) => rule === "always")) {
      compiler.issue(
        "STEP_CONFIG_INVALID",
        "config.paths",
        "a fallback is never taken beside an always path with evaluation first"
      )
    }
    const keys = new Set<string>()
    const testOf = function* ({ conditions, key, rule }: typeof Path.Type, i: number): Resumable<PathTest> {
      const field = `config.paths[${i}]`
      if (keys.has(key)) compiler.issue("PATH_KEY_DUPLICATE", `${field}.key`, "another path has this key")
      keys.add(key)
      if (rule !== "conditions") {
        if (conditions !== undefined) {
          compiler.issue("STEP_CONFIG_INVALID", `${field}.conditions`, `has no effect where the rule is ${rule}`)
        }
        return { key, rule, holds: () => rule === "always" }
      }
      if (conditions === undefined) {
        compiler.issue("CONDITION_INVALID", `${field}.conditions`, "is required where the rule is conditions")
        return { key, rule, holds: () => false }
      }
      return { key, rule, holds: yield* compiler.condition(conditions, `${field}.conditions`) }
    }
    const tests: Array<PathTest> = []
    for (const [i, path] of paths.slice(0, limits.paths).entries()) {
      tests.push(yield* testOf(path, i))
      yield
    }
    const fallback = fallbacks[0]
    return function* ({ context }) {
      const taken: Array<string> = []
      let byConditions = false
      for (const { holds, key, rule } of tests) {
        if (rule === "conditions") yield
        if (!holds(context)) continue
        byConditions ||= rule === "conditions"
        taken.push(key)
        if (first) break
      }
      const falls = fallback !== undefined && !byConditions
      if (falls) taken.push(fallback.key)
      return { kind: "succeeded", output: { matched: taken, fallback: falls }, ports: taken.map(portOf) }
    }
  }
})
