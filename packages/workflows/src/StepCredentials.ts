import type { Edge, Step } from "./Definition.ts"
import type { Issue } from "./Issue.ts"
import { type Looked, placesIn, shownInputs } from "./WrittenCredentials.ts"

/**
 * Credentials as literals in the inputs of steps. Everyone who may read a workflow reads its steps, and each version keeps them.
 * So they are refused, with advice what to do instead. In steps that were stored before this rule they are masked where they are
 * shown.
 */

const lookedOf = (step: Step | undefined): Looked =>
  step?.kind === "action" && step.action?.provider_key === "formatter" ? "looks" : "names and looks"

interface Graph {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}

/** A graph as it is shown. */
export const shownGraph = ({ edges, steps }: Graph): Graph => {
  const byId = new Map(steps.map((step) => [step.id, step]))
  return {
    steps: steps.map((step) => {
      const inputs = shownInputs(step.invocation_inputs, lookedOf(step))
      return inputs === step.invocation_inputs ? step : { ...step, invocation_inputs: inputs }
    }),
    edges: edges.map((edge) => {
      const mapping = shownInputs(edge.mapping, lookedOf(byId.get(edge.target_step_id)))
      return mapping === edge.mapping ? edge : { ...edge, mapping }
    })
  }
}

const problem = "a credential is written out, and whoever reads the workflow would read it: "
const ways: { readonly [kind: string]: string } = {
  transformation: "keep it as a variable of the transformation, or take the value from the run by a template",
  destination: "keep it with the destination, or take the value from the run by a template"
}
const otherwise =
  "save the action with its credentials and name that in resource_id, or take the value from the run by a template"

/** The faults of a graph that contains credentials. */
export const credentialsIn = ({ edges, steps }: Graph): ReadonlyArray<Issue> => {
  const byId = new Map(steps.map((step) => [step.id, step]))
  const issues: Array<Issue> = []
  const look = (inputs: unknown, step: Step | undefined, issue: Pick<Issue, "step_id" | "edge_id" | "field">): void => {
    const message = problem + (ways[step?.kind ?? ""] ?? otherwise)
    for (const place of placesIn(inputs, lookedOf(step))) {
      const { edge_id, field, step_id } = issue
      issues.push({ code: "STEP_CONFIG_INVALID", step_id, edge_id, field: `${field}.${place}`, message })
    }
  }
  for (const step of steps) {
    look(step.invocation_inputs, step, { step_id: step.id, edge_id: null, field: "invocation_inputs" })
  }
  for (const { id, mapping, target_step_id } of edges) {
    look(mapping, byId.get(target_step_id), { step_id: null, edge_id: id, field: "mapping" })
  }
  return issues.slice(0, maxIssues)
}

const maxIssues = 20
