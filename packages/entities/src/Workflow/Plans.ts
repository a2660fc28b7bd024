import { Effect, Result } from "effect"
import { prefixes } from "@tidegate/model/Ids"
import { weighing } from "@tidegate/runtime/HeldBytes"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import { WeighedCache } from "@tidegate/runtime/WeighedCache"
import { type PinnedAction, pinnedActions } from "@tidegate/storage/workflows/ActionVersions"
import { catalogFor } from "@tidegate/actions/ActionCatalog"
import { namedBefore, type NamedResource, namedResources } from "@tidegate/storage/workflows/RunResources"
import { type DueRun, readVersion } from "@tidegate/storage/workflows/Runs"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { compileLabel, type LabelTemplate } from "@tidegate/workflows/RunLabel"
import { compiling, type Workflow } from "@tidegate/workflows/Workflow"

/**
 * Cached plans of all workflows of a process. There is one for each version that runs still use, together with the resources that
 * the runs are pinned to.
 */
const maxPlans = 20_000

/** The compiled definition that a run follows. */
export interface Plan {
  readonly workflow: Workflow
  readonly name: string
  /** The template of its runs' labels; null: they have none. */
  readonly label: LabelTemplate | null
}

/**
 * A run's plan. `resources`: for a run that begins, the current resources that its steps name, as JSON, which are stored with it;
 * null: none.
 */
export interface Planned {
  readonly plan: Plan | null
  readonly resources: string | null
}

interface Definition {
  readonly name: string
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly run_label: string | null
  readonly names: ReadonlyArray<{ readonly step_id: string; readonly type: string; readonly id: string }>
}

/** The resources that were stored when the run began. They include what the run is pinned to. */
interface StoredResource extends Partial<NamedResource> {
  readonly step_id: string
  readonly id: string
}

/** The behaviour of a version's steps depends on these resources, and on nothing else that may change. */
const isPinned = ({ id }: { readonly id: string }): boolean => /^(?:act|flt|trs)_/.test(id)

const namesOf = (steps: ReadonlyArray<Step>): Definition["names"] =>
  steps.flatMap(({ id, kind, resource_id }) =>
    resource_id === null ? [] : [{ step_id: id, type: kind, id: resource_id }]
  )

const noActions: ReadonlyMap<string, PinnedAction> = new Map()

const definitions = new WeighedCache<string, Definition>(maxPlans)
const plans = new WeighedCache<string, Plan>(maxPlans)

/**
 * The plans of a workflow's versions, compiled once and cached while they are in use. Saved actions, stored filters and the code
 * of transformations are part of the plan: a run uses those that it began with until its end. Null: the version cannot be read,
 * or does not compile any more.
 */
export const plansOf = (id: string) => {
  const definitionOf = Effect.fnUntraced(function* (team_id: string, version: number) {
    const key = `${id} ${version}`
    const known = definitions.get(key)
    if (known !== undefined) return known
    const read = yield* readVersion(id, version)
    if (read === null) return null
    const bytes = yield* inSlices(weighing([read.steps, read.edges]))
    return definitions.set(key, { ...read, names: namesOf(read.steps) }, { owner: team_id, bytes })
  })

  const planOf = Effect.fnUntraced(function* (
    team_id: string,
    version: number,
    stored: ReadonlyArray<StoredResource> = []
  ) {
    const pins = stored.filter(isPinned)
    const key = [id, version, ...pins.map(({ content_hash, id }) => `${id}=${content_hash}`)].join(" ")
    const known = plans.get(key)
    if (known !== undefined) return known
    const definition = yield* definitionOf(team_id, version)
    if (definition === null) return null
    const { edges, name, run_label, steps } = definition
    const revisions = pins.flatMap(({ id, revision }) => (revision === undefined ? [] : [{ id, revision }]))
    const actions = revisions.length === 0 ? noActions : yield* pinnedActions(team_id, revisions)
    const filters = new Map(
      pins.flatMap(({ conditions, id }) => (conditions === undefined ? [] : [[id, conditions] as const]))
    )
    const codes = new Map(
      pins.flatMap(({ content_hash, id }) =>
        content_hash !== undefined && id.startsWith(prefixes.transformation)
          ? [[id, content_hash.replace(/^sha256:/, "")] as const]
          : []
      )
    )
    const catalog = { ...(yield* catalogFor(steps, actions, filters, codes)), isStored: true }
    const compiled = yield* inSlices(compiling(steps, edges, catalog))
    if (Result.isFailure(compiled)) {
      yield* Effect.logError("a workflow's version does not compile any more", { workflow_id: id, version })
      return null
    }
    const bytes = yield* inSlices(weighing([steps, edges, [...actions.values()], [...filters.values()]]))
    const plan = { workflow: compiled.success, name, label: compileLabel(run_label) }
    return plans.set(key, plan, { owner: team_id, bytes })
  })

  /** The resources that the steps of a version name, as they are now. */
  const namedNow = Effect.fnUntraced(function* (team_id: string, { names }: Definition) {
    const found = yield* namedResources(
      team_id,
      names.map((named) => named.id),
      { lost: true }
    )
    const byId = new Map(found.map((resource) => [resource.id, resource]))
    return names.map((named) => Object.assign({ ...named }, byId.get(named.id)) as StoredResource)
  })

  /** The plans of these runs, in the same order. */
  const plannedFor = Effect.fnUntraced(function* (runs: ReadonlyArray<DueRun>) {
    const now = new Map<number, ReadonlyArray<StoredResource>>()
    const before = new Map<string, string>()
    const goingOn: Array<string> = []
    for (const { id: run, parts, team_id, version } of runs) {
      const definition = yield* definitionOf(team_id, version)
      if (definition === null || definition.names.length === 0) continue
      if (parts > 0 && definition.names.some(isPinned)) goingOn.push(run)
      if (parts === 0 && !now.has(version)) now.set(version, yield* namedNow(team_id, definition))
    }
    for (const { resources, run_id } of yield* namedBefore(goingOn)) before.set(run_id, resources)
    /** Of the runs that begin, by version: the same for all of them. */
    const beginning = new Map<number, Planned>()
    const planned: Array<Planned> = []
    for (const { id: run, parts, team_id, version } of runs) {
      const known = parts === 0 ? beginning.get(version) : undefined
      if (known !== undefined) {
        planned.push(known)
        continue
      }
      const stored =
        parts === 0 ? now.get(version) : (JSON.parse(before.get(run) ?? "[]") as ReadonlyArray<StoredResource>)
      const plan = yield* planOf(team_id, version, stored)
      const made = { plan, resources: parts === 0 && stored !== undefined ? JSON.stringify(stored) : null }
      if (parts === 0) beginning.set(version, made)
      planned.push(made)
    }
    return planned
  })

  return { planOf, plannedFor }
}
