import { isExactNumber, isJsonNumber } from "@tidegate/model/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { secretNames } from "@tidegate/signatures/redaction/SecretNames"
import { redactedInPreviews as mask } from "@tidegate/signatures/redaction/SecretValues"
import { Predicate } from "effect"
import type { Edge, Step } from "./Definition.ts"
import type { Issue } from "./Issue.ts"

/**
 * Credentials that are written out in what a step gives to something outside. Whoever may read a workflow reads its steps, and each version keeps them:
 * so they are refused, with the way to do without, and those of steps that were stored before are masked where they are shown.
 */

const isSecret = secretNames([])

/** What goes before a credential in a header. */
const scheme = /^(?:basic|bearer|token|digest|apikey)\s+/i
/** Shorter ones are no credentials. */
const shortest = 4
/** Nothing is nested deeper that could be stored. */
const mostLevels = 64

/** Whether a value is written out, rather than taken from the run. */
const isWritten = (value: Json): boolean => {
  if (isJsonNumber(value)) return String(value).length >= shortest
  if (typeof value !== "string") return false
  const own = value.replaceAll(/(?<!\\)\{\{[^{}]*\}\}/g, "").trim()
  return own.replace(scheme, "").replaceAll(/\s/g, "").length >= shortest && !/^(?:basic|bearer|token)$/i.test(own)
}

const isCall = (step: Step | undefined): boolean =>
  step?.kind === "destination" || (step?.kind === "action" && step.action?.provider_key !== "formatter")

/** The value without credentials; itself where there are none. Told of each: where it stood. */
const without = (value: Json, path: string, under: boolean, tell: (path: string) => void, level = 0): Json => {
  if (under && isWritten(value)) {
    tell(path)
    return mask
  }
  if (typeof value !== "object" || value === null || isExactNumber(value) || level > mostLevels) return value
  if (Array.isArray(value)) {
    const shown = (value as ReadonlyArray<Json>).map((one, i) => without(one, `${path}[${i}]`, under, tell, level + 1))
    return shown.every((one, i) => one === value[i]) ? value : shown
  }
  const members = value as { readonly [name: string]: Json }
  // A list of headers or parameters may name each: `{"name": "authorization", "value": "…"}`.
  const named = ["name", "key"].some((name) => typeof members[name] === "string" && isSecret(members[name]))
  let isChanged = false
  const shown = Object.entries(members).map(([name, of]): [string, Json] => {
    const isUnder = under || isSecret(name) || (named && name === "value")
    const after = without(of, `${path}.${name}`, isUnder, tell, level + 1)
    isChanged ||= after !== of
    return [name, after]
  })
  return isChanged ? Object.fromEntries(shown) : value
}

const nobody = (): void => {}

interface Graph {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}

/** A graph as it is shown. */
export const shownGraph = ({ edges, steps }: Graph): Graph => {
  const calls = new Set(steps.filter(isCall).map(({ id }) => id))
  const shown = <Value>(value: Value): Value => without(value as Json, "", false, nobody) as Value
  return {
    steps: steps.map((step) => {
      const inputs = isCall(step) ? shown(step.invocation_inputs) : step.invocation_inputs
      return inputs === step.invocation_inputs ? step : { ...step, invocation_inputs: inputs }
    }),
    edges: edges.map((edge) => {
      const mapping = calls.has(edge.target_step_id) ? shown(edge.mapping) : edge.mapping
      return mapping === edge.mapping ? edge : { ...edge, mapping }
    })
  }
}

const told =
  "a credential is written out, and whoever reads the workflow would read it: save the action with its credentials and name that in resource_id, or take the value from the run by a template"

/** What is wrong with a graph that holds credentials. */
export const credentialsIn = ({ edges, steps }: Graph): ReadonlyArray<Issue> => {
  const issues: Array<Issue> = []
  const calls = new Set(steps.filter(isCall).map(({ id }) => id))
  const look = (value: unknown, field: string, at: Pick<Issue, "step_id" | "edge_id">): void =>
    void without(value as Json, field, false, (path) => {
      if (issues.length < mostIssues) issues.push({ code: "STEP_CONFIG_INVALID", ...at, field: path, message: told })
    })
  for (const step of steps) {
    if (isCall(step)) look(step.invocation_inputs, "invocation_inputs", { step_id: step.id, edge_id: null })
  }
  for (const { id, mapping, target_step_id } of edges) {
    if (calls.has(target_step_id) && Predicate.isNotNull(mapping))
      look(mapping, "mapping", { step_id: null, edge_id: id })
  }
  return issues
}

const mostIssues = 20
