import { Result, type Schema } from "effect"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { Resumable } from "@tidegate/runtime/Resumable"
import type { Rule } from "@tidegate/model/Rule"
import { judgingRules } from "@tidegate/rules/RuleSet"
import { asObject, type FieldErrors, isStorableJson, orInvalid } from "../Input.ts"
import { transformation } from "../Transformation.ts"

/** The fault of a rule; `rule_index` is its index in the written array, null for the array itself. */
interface RuleFault {
  readonly rule_index: number | null
  readonly path: string
  readonly message: string
}

type RuleFaults = ReadonlyArray<RuleFault>

const placeOf = ({ path, rule_index }: RuleFault): string =>
  rule_index === null ? "rules" : `rules[${rule_index}]${path === "" ? "" : `.${path}`}`

const asFields = (faults: RuleFaults): FieldErrors =>
  faults.map((fault) => ({ path: placeOf(fault), message: fault.message }))

/** 400 for a connection: RULE_INVALID, about the first wrong rule, when nothing else is wrong. */
export const invalidWithRules = (members: FieldErrors, rules: RuleFaults): GatewayError => {
  const [first] = rules
  if (first === undefined || members.length > 0) return invalid([...members, ...asFields(rules)])
  const more = rules.length === 1 ? "" : ` (and ${rules.length - 1} more, see data.fields)`
  const { message, path, rule_index } = first
  return fail("RULE_INVALID", `${placeOf(first)}: ${message}${more}`, {
    rule_index,
    path,
    message,
    fields: rules.map((fault) => ({ path: placeOf(fault), message: fault.message }))
  })
}

/** The rules in stored form, or the faults of each wrong one; resumable, it yields after each rule. */
export const checkingRules = (input: Schema.Json): Resumable<Result.Result<ReadonlyArray<Rule>, RuleFaults>> =>
  judgingRules(input, (rule, written) => {
    if (rule.type === "transform" && "transformation" in rule) {
      const checked = Result.flatMap(orInvalid(asObject(rule.transformation)), transformation.write.judge)
      if (Result.isFailure(checked)) return { path: "transformation", message: checked.failure.message }
    }
    return isStorableJson(written as Schema.Json)
      ? null
      : { path: "", message: "must be valid Unicode text without NUL" }
  })
