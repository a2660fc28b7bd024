import { Result, type Schema } from "effect"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import { normalizeRules } from "@tidegate/rules/RuleSet"
import { asObject, type FieldErrors, isStorableJson, orInvalid } from "../Input.ts"
import { transformation } from "../Transformation.ts"

/** What is wrong with a rule; `rule_index` is its place in the array as written, null for the array itself. */
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

/** 400 for a connection: RULE_INVALID, about the first of its rules that is wrong, when nothing else is. */
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

/** What is wrong with one written rule, whatever stands beside it. */
const faultOf = (written: Schema.Json, rule_index: number): RuleFault | null => {
  // Rule by rule, because the order of the whole is no longer the written one.
  const alone = normalizeRules([written])
  if (Result.isFailure(alone)) return { rule_index, path: alone.failure.path, message: alone.failure.message }
  const [rule] = alone.success
  if (rule?.type === "transform" && "transformation" in rule) {
    const checked = Result.flatMap(orInvalid(asObject(rule.transformation)), transformation.write.judge)
    if (Result.isFailure(checked)) return { rule_index, path: "transformation", message: checked.failure.message }
  }
  return isStorableJson(written) ? null : { rule_index, path: "", message: "must be valid Unicode text without NUL" }
}

/** The rules as they are stored, or what is wrong with each that is. */
export const checkRules = (input: Schema.Json): Result.Result<ReadonlyArray<Rule>, RuleFaults> => {
  const rules = normalizeRules(input)
  if (Result.isFailure(rules) && rules.failure.rule_index === null) return Result.fail([rules.failure])
  const faults = (input as ReadonlyArray<Schema.Json>).flatMap((written, index) => faultOf(written, index) ?? [])
  if (faults.length > 0) return Result.fail(faults)
  return Result.mapError(rules, (fault) => [fault])
}
