import { Effect, Result, type Schema } from "effect"
import { catalogFor } from "@tidegate/actions/ActionCatalog"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Issue } from "@tidegate/workflows/Issue"
import { limits } from "@tidegate/workflows/Limits"
import { judging, type Workflow as Compiled } from "@tidegate/workflows/Workflow"
import type { WorkflowFields } from "../Workflow.ts"
import type { DefinitionFacts, StoredDefinition } from "./DefinitionFacts.ts"
import { changedKinds, ignoredInputs, newCredentials } from "./DefinitionIssues.ts"

/**
 * The check of a workflow's definition against the team's resources: it compiles, and what its steps name exists and can run. The
 * caller provides the facts about the resources. A save reads them in its transaction, so that they hold until its commit.
 */

type Graph = Pick<WorkflowFields, "steps" | "edges">

interface Reference {
  readonly step_id: string
  readonly id: string
  readonly field: "resource_id" | "action.provider_account_id"
  /** Of an account: the provider whose account it has to be; null: it is no account. */
  readonly provider_key: unknown
}

const member = (of: unknown, name: string): unknown =>
  typeof of === "object" && of !== null && Object.hasOwn(of, name)
    ? (of as Readonly<Record<string, unknown>>)[name]
    : undefined

/** The resources that steps name, even in a graph with faults. The check of the graph reports unknown kinds of ids. */
const referencesOf = (steps: ReadonlyArray<unknown>): ReadonlyArray<Reference> =>
  steps.slice(0, limits.steps).flatMap((step) => {
    const step_id = member(step, "id")
    if (typeof step_id !== "string") return []
    const [action, resource] = [member(step, "action"), member(step, "resource_id")]
    const account = member(action, "provider_account_id")
    const found: Array<Reference> = []
    const add = (id: string, rest: Pick<Reference, "field" | "provider_key">): void =>
      void found.push({ step_id: step_id.slice(0, 96), id: id.slice(0, 96), ...rest })
    if (typeof resource === "string" && /^(?:des|trs|act|flt|src|wfl)_/.test(resource)) {
      add(resource, { field: "resource_id", provider_key: null })
    }
    if (typeof account === "string") {
      add(account, { field: "action.provider_account_id", provider_key: member(action, "provider_key") })
    }
    return found
  })

/** The ids of the resources that steps name. */
export const namedIds = (steps: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  referencesOf(steps).map(({ id }) => id)

/**
 * Steps that named the same resource before. An active workflow may keep a resource that was disabled since: its runs report
 * that.
 */
const keptBy = (before: StoredDefinition | null, steps: ReadonlyArray<unknown>): ReadonlySet<string> => {
  if (before?.status !== "active") return new Set()
  const named = new Set(referencesOf(before.steps).map(({ id, step_id }) => `${step_id}/${id}`))
  return new Set(referencesOf(steps).flatMap(({ id, step_id }) => (named.has(`${step_id}/${id}`) ? [step_id] : [])))
}

const invalidGraph = (issues: ReadonlyArray<Issue>): GatewayError => {
  const [first] = issues
  const more = issues.length === 1 ? "" : ` (and ${issues.length - 1} more, see data.issues)`
  return fail("WORKFLOW_GRAPH_INVALID", `${first?.code}: ${first?.message}${more}`, {
    issues: issues.map((issue) => ({ ...issue }))
  })
}

const about = <Code extends string>(code: Code, { field, id, step_id }: Reference, what: string) => {
  return { code, step_id, edge_id: null, field, message: `${id} ${what}` }
}

interface Circumstances {
  readonly before: StoredDefinition | null
  /** Steps whose resources may be disabled. */
  readonly exempt: ReadonlySet<string>
  readonly conditions: ReadonlyMap<string, Schema.Json>
}

/** All faults of the graph, and all ids of missing resources, are reported together. */
const check = Effect.fnUntraced(function* <E>(
  { edges, status, steps }: Pick<WorkflowFields, "edges" | "status" | "steps">,
  facts: DefinitionFacts<E>,
  { before, conditions, exempt }: Circumstances
): Effect.fn.Return<Compiled, E | GatewayError> {
  const references = referencesOf(steps)
  const saved = yield* facts.savedActions(namedIds(steps))
  // A stored definition stays as it was written, even when a new one like it would be refused: it can still be paused and
  // renamed.
  const isStored = before !== null && isSameJson([before.steps, before.edges], [steps, edges])
  const catalog = yield* catalogFor(steps, saved, conditions)
  const result = yield* inSlices(judging(steps, edges, isStored ? { ...catalog, isStored } : catalog))
  const found = yield* facts.resources(namedIds(steps))
  const isThere = ({ id, provider_key }: Reference): boolean =>
    found.has(id) && (provider_key === null || found.get(id)?.provider_key === provider_key)
  const missing = references
    .filter((reference) => !isThere(reference))
    .map((reference) => about("RESOURCE_NOT_FOUND", reference, "was not found"))
  if (Result.isFailure(result)) return yield* invalidGraph([...result.failure, ...missing])
  const compiled = result.success
  const further = isStored
    ? missing
    : [
        ...missing,
        ...(yield* changedKinds(before, compiled.steps, facts)),
        ...(yield* ignoredInputs(compiled, facts)),
        ...newCredentials(before, compiled)
      ]
  if (further.length > 0) return yield* invalidGraph(further)
  const disabled = references.filter(({ id, step_id }) => found.get(id)?.enabled === false && !exempt.has(step_id))
  if (status === "active" && disabled.length > 0) {
    yield* fail("WORKFLOW_NOT_EXECUTABLE", "the workflow names disabled resources: enable them first", {
      issues: disabled.map((reference) => about("RESOURCE_DISABLED", reference, "is disabled"))
    })
  }
  return compiled
})

/** Compiles a definition to be stored. `before`: the stored one; null: the workflow is new. */
export const checkDefinition = <E>(
  written: Pick<WorkflowFields, "edges" | "status" | "steps">,
  before: StoredDefinition | null,
  facts: DefinitionFacts<E>
): Effect.Effect<Compiled, E | GatewayError> =>
  check(written, facts, { before, exempt: keptBy(before, written.steps), conditions: new Map() })

/** Compiles a graph for a dry run. `mocked`: steps that need not be able to run, because a mock replaces them. */
export const checkDryRun = <E>(
  graph: Graph,
  mocked: ReadonlySet<string>,
  facts: DefinitionFacts<E>
): Effect.Effect<Compiled, E | GatewayError> =>
  Effect.flatMap(facts.conditions(namedIds(graph.steps)), (conditions) =>
    check({ ...graph, status: "active" }, facts, { before: null, exempt: mocked, conditions })
  )

/**
 * Warnings about a valid graph: references that find nothing when they run. `body`: JSON Schema of the body of what begins its
 * runs; null: not known.
 */
export const definitionWarnings = Effect.fnUntraced(function* <E>(
  { edges, steps }: Graph,
  body: Schema.JsonObject | null,
  facts: DefinitionFacts<E>
): Effect.fn.Return<Compiled["warnings"], E> {
  const catalog = yield* catalogFor(steps, yield* facts.savedActions(namedIds(steps)))
  const result = yield* inSlices(judging(steps, edges, { ...catalog, body }))
  return Result.isSuccess(result) ? result.success.warnings : []
})
