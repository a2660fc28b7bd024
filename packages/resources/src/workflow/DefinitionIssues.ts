import { Effect } from "effect"
import { ignoredParts } from "@tidegate/connectors/Connectors"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { prefixes } from "@tidegate/model/Ids"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import type { Issue } from "@tidegate/workflows/Issue"
import { credentialsIn } from "@tidegate/workflows/StepCredentials"
import type { DefinitionFacts, StoredDefinition } from "./DefinitionFacts.ts"

/** Faults of a graph that compiles, from the workflow's earlier versions and from the resources that its steps name now. */

/** Steps that had another kind in an earlier version: one history would be of two different things. */
export const changedKinds = Effect.fnUntraced(function* <E>(
  before: StoredDefinition | null,
  steps: ReadonlyArray<Step>,
  facts: Pick<DefinitionFacts<E>, "storedKinds">
): Effect.fn.Return<ReadonlyArray<Issue>, E> {
  if (before === null) return []
  const kinds = new Map<string, string>(before.steps.map(({ id, kind }) => [id, kind]))
  const fresh = steps.filter(({ id }) => !kinds.has(id)).map(({ id }) => id)
  if (fresh.length > 0) {
    for (const { id, kind } of yield* facts.storedKinds(before.id, fresh)) kinds.set(id, kind)
  }
  return steps.flatMap(({ id, kind }): ReadonlyArray<Issue> => {
    const was = kinds.get(id)
    if (was === undefined || was === kind) return []
    const message = `was ${was} in an earlier version, and a step keeps its kind: use another id`
    return [{ code: "STEP_KIND_CHANGED", step_id: id, edge_id: null, field: "kind", message }]
  })
})

interface Given {
  readonly destination: string
  readonly part: string
  readonly issue: Pick<Issue, "edge_id" | "field" | "step_id">
}

interface Graph {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
}

const parts = ["path", "query"] as const

/** Paths and queries that steps pass to destinations, or that edges pass to such steps. */
const givenOf = ({ edges, steps }: Graph): ReadonlyArray<Given> => {
  const destinations = new Map(
    steps.flatMap(({ id, kind, resource_id }) =>
      kind === "destination" && resource_id !== null && resource_id.startsWith(prefixes.destination)
        ? [[id, resource_id] as const]
        : []
    )
  )
  const partsIn = (given: object | null) => parts.filter((part) => given !== null && Object.hasOwn(given, part))
  const ofSteps = steps.flatMap(({ id, invocation_inputs }) =>
    partsIn(invocation_inputs).map((part) => ({
      destination: destinations.get(id),
      part,
      issue: { step_id: id, edge_id: null, field: `invocation_inputs.${part}` }
    }))
  )
  const ofEdges = edges.flatMap(({ id, mapping, target_step_id }) =>
    partsIn(mapping).map((part) => ({
      destination: destinations.get(target_step_id),
      part,
      issue: { step_id: null, edge_id: id, field: `mapping.${part}` }
    }))
  )
  return [...ofSteps, ...ofEdges].flatMap((given) =>
    given.destination === undefined ? [] : [{ ...given, destination: given.destination }]
  )
}

/** Inputs of steps that their destinations do not send. */
export const ignoredInputs = Effect.fnUntraced(function* <E>(
  graph: Graph,
  facts: Pick<DefinitionFacts<E>, "destinations">
): Effect.fn.Return<ReadonlyArray<Issue>, E> {
  const given = givenOf(graph)
  if (given.length === 0) return []
  const found = yield* facts.destinations([...new Set(given.map(({ destination }) => destination))])
  return given.flatMap(({ destination, issue, part }): ReadonlyArray<Issue> => {
    const row = found.get(destination)
    if (row === undefined || !ignoredParts(row.type, row.config).includes(part)) return []
    const message = `has no effect: the destination ${destination} (${row.type}) does not send the ${part}`
    return [{ code: "STEP_CONFIG_INVALID", ...issue, message }]
  })
})

/** Credentials that a change would put into steps. Those that were stored before this rule stay until they are changed. */
export const newCredentials = (before: StoredDefinition | null, { edges, steps }: Graph): ReadonlyArray<Issue> => {
  const isKept = (
    kept: ReadonlyArray<{ readonly id: string }>,
    among: ReadonlyArray<{ readonly id: string }>,
    id: string | null
  ) =>
    isSameJson(
      kept.find((one) => one.id === id) ?? null,
      among.find((one) => one.id === id)
    )
  return credentialsIn({ steps, edges }).filter(
    ({ edge_id, step_id }) =>
      before === null ||
      !(step_id === null ? isKept(before.edges, edges, edge_id) : isKept(before.steps, steps, step_id))
  )
}
