import { Context, Result, type Schema } from "effect"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { isStorableJson } from "../Input.ts"

/** Whether rules may be written that a connection works off behind the sender's back: deduplicate and transform. */
export class SlowRules extends Context.Reference<boolean>("@tidegate/entities/SlowRules", {
  defaultValue: () => false
}) {}

const ruleInvalid = (rule_index: number | null, path: string, message: string): GatewayError => {
  const place = rule_index === null ? "rules" : `rules[${rule_index}]${path === "" ? "" : `.${path}`}`
  return fail("RULE_INVALID", `${place}: ${message}`, { rule_index, path, message })
}

/** Why a valid rule cannot be written yet. */
const unavailable = (rule: Rule, slowRules: boolean): string | null => {
  if ((rule.type === "deduplicate" || rule.type === "transform") && !slowRules) {
    return `${rule.type} rules are not available yet`
  }
  if (rule.type === "transform" && "transformation" in rule) return "inline transformations are not available yet"
  return rule.type === "filter" && rule.filter_id !== undefined ? "stored filters are not available yet" : null
}

/** The rules as they are stored, or 400 RULE_INVALID with `rule_index`, the place in the array as written. */
export const checkRules = (input: Schema.Json, slowRules: boolean): Result.Result<ReadonlyArray<Rule>, GatewayError> =>
  Result.flatMap(
    Result.mapError(normalizeRules(input), ({ message, path, rule_index }) => ruleInvalid(rule_index, path, message)),
    (rules) => {
      for (const [index, written] of (input as ReadonlyArray<Schema.Json>).entries()) {
        // Rule by rule, because the order of the whole is no longer the written one.
        const [rule] = Result.getOrElse(normalizeRules([written]), () => [])
        const reason = rule === undefined ? null : unavailable(rule, slowRules)
        if (reason !== null) return Result.fail(ruleInvalid(index, "type", reason))
        if (!isStorableJson(written)) {
          return Result.fail(ruleInvalid(index, "", "must be valid Unicode text without NUL"))
        }
      }
      return Result.succeed(rules)
    }
  )
