import { Result, type Schema } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { isStorableJson } from "../Input.ts"
import { createTransformation } from "../Transformation/TransformationInput.ts"

const ruleInvalid = (rule_index: number | null, path: string, message: string): GatewayError => {
  const place = rule_index === null ? "rules" : `rules[${rule_index}]${path === "" ? "" : `.${path}`}`
  return fail("RULE_INVALID", `${place}: ${message}`, { rule_index, path, message })
}

/** The rules as they are stored, or 400 RULE_INVALID with `rule_index`, the place in the array as written. */
export const checkRules = (input: Schema.Json): Result.Result<ReadonlyArray<Rule>, GatewayError> =>
  Result.flatMap(
    Result.mapError(normalizeRules(input), ({ message, path, rule_index }) => ruleInvalid(rule_index, path, message)),
    (rules) => {
      for (const [index, written] of (input as ReadonlyArray<Schema.Json>).entries()) {
        // Rule by rule, because the order of the whole is no longer the written one.
        const [rule] = Result.getOrElse(normalizeRules([written]), () => [])
        if (rule?.type === "filter" && rule.filter_id !== undefined) {
          return Result.fail(ruleInvalid(index, "type", "stored filters are not available yet"))
        }
        if (rule?.type === "transform" && "transformation" in rule) {
          const checked = createTransformation(rule.transformation)
          if (Result.isFailure(checked)) {
            return Result.fail(ruleInvalid(index, "transformation", checked.failure.message))
          }
        }
        if (!isStorableJson(written)) {
          return Result.fail(ruleInvalid(index, "", "must be valid Unicode text without NUL"))
        }
      }
      return Result.succeed(rules)
    }
  )
