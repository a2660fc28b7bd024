import { didYouMean } from "@tidegate/model/NearestName"
import { decodeAll } from "@tidegate/rules/Decode"
import { Result } from "effect"
import { checkCompensations, undoneBy, waysOf } from "./Compensation.ts"
import { type Edge, Step, WrittenEdge } from "./Definition.ts"
import { idOf, type IssueCode, type Issues, textAt } from "./Issue.ts"
import { limits } from "./Limits.ts"
import { portsOf } from "./Ports.ts"
import type { Resumable, StepKind } from "./StepKind.ts"
import { stepKindOf, stepKinds } from "./StepKinds.ts"

/** The graph of a workflow by its structure: nodes, ports, edges, and the order in which steps are started. */

export interface Graph {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  /** Each step comes after all steps that lead to it; otherwise in the written order. Steps of a cycle come last. */
  readonly order: ReadonlyArray<Step>
  readonly kinds: ReadonlyMap<string, StepKind<unknown>>
  /** The ids of all written steps, including invalid ones. */
  readonly ids: ReadonlySet<string>
  /** False: steps or edges are missing or there is a cycle, so the paths between steps are not known. */
  readonly isWhole: boolean
}

/** Null when the graph exceeds the limits; `issues` has the faults in either case. */
export function* readGraph(
  writtenSteps: ReadonlyArray<unknown>,
  writtenEdges: ReadonlyArray<unknown>,
  issues: Issues
): Resumable<Graph | null> {
  if (writtenSteps.length > limits.steps) {
    issues.graph("STEP_LIMIT_EXCEEDED", `a workflow has at most ${limits.steps} steps`)
  }
  if (writtenEdges.length > limits.edges) {
    issues.graph("EDGE_LIMIT_EXCEEDED", `a workflow has at most ${limits.edges} edges`)
  }
  if (issues.all.length > 0) return null
  const kinds = new Map<string, StepKind<unknown>>()
  const seen = new Set<string>()
  const steps: Array<Step> = []
  for (const [index, written] of writtenSteps.entries()) {
    steps.push(...readStep(written, index, seen, kinds, issues))
    yield
  }
  const ids = new Set(writtenSteps.flatMap((written) => textAt(written, "id") ?? []))
  const { edges, isSure } = yield* readEdges(writtenEdges, kinds, steps, ids, issues)
  const isRead = isSure && steps.length === writtenSteps.length && edges.length === writtenEdges.length
  const targets = new Set(writtenEdges.map((written) => textAt(written, "target_step_id")))
  const undone = undoneBy(steps)
  for (const id of ids) {
    if (!targets.has(id) && !undone.has(id)) issues.step("STEP_WITHOUT_INPUT", id, null, "no edge leads to this step")
  }
  checkCompensations({ steps, edges, kinds, ids }, issues)
  const order = sorted(steps, edges)
  if (order.length < steps.length) reportCycle(steps, waysOf(steps, edges), order, isRead, issues)
  const rest = steps.filter((step) => !order.includes(step))
  return { steps, edges, order: [...order, ...rest], kinds, ids, isWhole: isRead && rest.length === 0 }
}

/** The path of a fault: by the step's id, or by its index when the id is not unique or missing. */
const placeOf = (index: number, id: string | null, path: string): string =>
  id === null ? `steps[${index}]${path === "" ? "" : `.${path}`}` : path

/** A value that is no object has no members to report. */
const faultOf = (path: string, message: string): string => (path === "" ? "must be an object" : message)

const readStep = (
  written: unknown,
  index: number,
  seen: Set<string>,
  kinds: Map<string, StepKind<unknown>>,
  issues: Issues
): ReadonlyArray<Step> => {
  const read = decodeAll(Step, written, "a step")
  if (Result.isFailure(read)) {
    const id = idOf(written)
    for (const { message, path } of read.failure) {
      issues.step("STEP_INVALID", id, placeOf(index, id, path), faultOf(path, message))
    }
    return []
  }
  const step = read.success
  const isRepeated = seen.has(step.id)
  if (isRepeated) issues.step("DUPLICATE_STEP_ID", step.id, "id", "another step has this id")
  seen.add(step.id)
  if (Object.keys(step.config).length > limits.configMembers) {
    issues.step("STEP_CONFIG_INVALID", step.id, "config", `has more than ${limits.configMembers} members`)
    return []
  }
  const kind = stepKindOf(step.kind)
  if (kind === null) {
    const meant = didYouMean(
      step.kind,
      stepKinds.map((row) => row.kind)
    )
    issues.step("STEP_KIND_UNKNOWN", step.id, "kind", `is not a kind of step${meant}`)
    return []
  }
  if (isRepeated) return []
  kinds.set(step.id, kind)
  return [{ ...step, kind: kind.kind }]
}

/** The ports of a step, with `error` when its config continues after a failure. Null: its config is invalid. */
const portsIn = (step: Step, kind: StepKind<unknown>): ReadonlyArray<string> | null => {
  const config = decodeAll(kind.config, onlyOwn(step, kind), "config")
  if (Result.isFailure(config)) return null
  const ports = portsOf(kind.ports, config.success)
  return kind.settings.includes("on_error") ? [...ports, "error"] : ports
}

/** The members of `config` that belong to the kind itself. */
export const onlyOwn = (step: Step, kind: StepKind<unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(step.config).filter(([member]) => Object.hasOwn(kind.config.fields, member)))

/** An edge that names the step where it begins need not say that it begins at a step. */
const withSourceType = (written: unknown): unknown =>
  textAt(written, "source_step_id") !== null && !Object.hasOwn(written as object, "source_type")
    ? { ...(written as object), source_type: "step" }
    : written

const numbered = (index: number): string => `e_${String(index).padStart(2, "0")}`

function* readEdges(
  written: ReadonlyArray<unknown>,
  kinds: ReadonlyMap<string, StepKind<unknown>>,
  steps: ReadonlyArray<Step>,
  stepIds: ReadonlySet<string>,
  issues: Issues
): Resumable<{ readonly edges: ReadonlyArray<Edge>; readonly isSure: boolean }> {
  const ports = new Map<string, ReadonlyArray<string> | null>()
  for (const step of steps) {
    ports.set(step.id, portsIn(step, kinds.get(step.id)!))
    yield
  }
  const ids = new Set<string>()
  const routes = new Set<string>()
  const named = new Set(written.map((one) => textAt(one, "id")))
  let unused = written.length
  /** An invalid port leaves only the edge's start unknown: the rest of the edge is still checked. */
  let isSure = true
  /** A default name by the index. When another edge has that name already, a free number is used. */
  const nameAt = (index: number): string => {
    let name = numbered(index)
    while (named.has(name)) name = numbered(unused++)
    return name
  }
  const readEdge = (one: unknown, index: number): ReadonlyArray<Edge> => {
    const read = decodeAll(WrittenEdge, withSourceType(one), "an edge")
    if (Result.isFailure(read)) {
      const id = idOf(one) ?? nameAt(index)
      for (const { message, path } of read.failure) issues.edge("EDGE_INVALID", id, path, faultOf(path, message))
      return []
    }
    const id = read.success.id ?? nameAt(index)
    const { condition, mapping, position, source_port, source_step_id, source_type, target_port, target_step_id } =
      read.success
    let isRight = true
    const refuse = (code: IssueCode, field: string | null, message: string): void => {
      isRight = false
      issues.edge(code, id, field, message)
    }
    if (ids.has(id)) refuse("DUPLICATE_EDGE_ID", "id", "another edge has this id")
    ids.add(id)
    const fromTrigger = source_type === "trigger"
    if (fromTrigger ? source_step_id !== null : !stepIds.has(source_step_id ?? "")) {
      const what = fromTrigger ? "is null where the edge begins at the trigger" : "no step has this id"
      refuse("EDGE_SOURCE_UNKNOWN", "source_step_id", what)
    }
    if (!stepIds.has(target_step_id)) refuse("EDGE_TARGET_UNKNOWN", "target_step_id", "no step has this id")
    const known = fromTrigger ? ["out"] : ports.get(source_step_id ?? "")
    // Faults of the steps themselves are reported there.
    isRight &&= known != null && ports.has(target_step_id)
    const required = source_step_id !== null && (kinds.get(source_step_id)?.portRequired ?? false)
    const port = source_port ?? (required ? null : (known?.[0] ?? null))
    if (known != null && (port === null || !known.includes(port))) {
      const choice = known.length === 0 ? "" : `: one of ${known.join(", ")}`
      issues.edge("PORT_UNKNOWN", id, "source_port", `is not a port of the step it begins at${choice}`)
      isSure = false
    }
    if (target_port !== "in") {
      issues.edge("PORT_UNKNOWN", id, "target_port", "is not a port that leads into a step: there is in")
    }
    const route = JSON.stringify([source_step_id, port, target_step_id])
    if (routes.has(route)) refuse("DUPLICATE_EDGE", null, "another edge has the same source, port and target")
    routes.add(route)
    if (!isRight) return []
    return [
      {
        id,
        source_type,
        source_step_id,
        source_port: port ?? "",
        target_step_id,
        target_port: "in",
        mapping: mapping ?? {},
        condition,
        position: position ?? index
      }
    ]
  }
  const edges: Array<Edge> = []
  for (const [index, one] of written.entries()) {
    edges.push(...readEdge(one, index))
    yield
  }
  return { edges, isSure }
}

/** Kahn's algorithm: of the steps whose sources are all placed, the one that was written first. Those that undo others come last. */
export const sorted = <S extends Pick<Step, "id" | "config">>(
  steps: ReadonlyArray<S>,
  edges: ReadonlyArray<Pick<Edge, "source_step_id" | "target_step_id">>
): ReadonlyArray<S> => {
  const ways = waysOf(steps, edges)
  const waiting = new Map(steps.map(({ id }) => [id, 0]))
  for (const { source_step_id, target_step_id } of ways) {
    if (source_step_id !== null) waiting.set(target_step_id, (waiting.get(target_step_id) ?? 0) + 1)
  }
  const placed: Array<S> = []
  const undone = undoneBy(steps)
  const left = [...steps.filter(({ id }) => !undone.has(id)), ...steps.filter(({ id }) => undone.has(id))]
  for (;;) {
    const next = left.findIndex(({ id }) => waiting.get(id) === 0)
    if (next < 0) return placed
    const [step] = left.splice(next, 1)
    placed.push(step!)
    for (const { source_step_id, target_step_id } of ways) {
      if (source_step_id === step!.id) waiting.set(target_step_id, waiting.get(target_step_id)! - 1)
    }
  }
}

const reportCycle = (
  steps: ReadonlyArray<Step>,
  edges: ReadonlyArray<Pick<Edge, "source_step_id" | "target_step_id">>,
  placed: ReadonlyArray<Step>,
  isRead: boolean,
  issues: Issues
): void => {
  const left = new Set(steps.filter((step) => !placed.includes(step)).map(({ id }) => id))
  // Every remaining step has a predecessor that remains too: so walking backwards finds a cycle.
  const walked: Array<string> = []
  let at = [...left][0]!
  while (!walked.includes(at)) {
    walked.push(at)
    at = edges.find(
      ({ source_step_id, target_step_id }) => target_step_id === at && left.has(source_step_id ?? "")
    )!.source_step_id!
  }
  const cycle = walked.slice(walked.indexOf(at)).toReversed()
  issues.graph("GRAPH_CYCLE", `these steps lead to each other: ${cycle.join(", ")}`, { step_ids: cycle })
  // An edge that is missing here may lead to them.
  if (!isRead) return
  const reached = new Set(placed.map(({ id }) => id))
  let grew = edges.some(({ source_step_id }) => source_step_id === null)
  while (grew) {
    grew = false
    for (const { source_step_id, target_step_id } of edges) {
      if (reached.has(target_step_id) || !(source_step_id === null || reached.has(source_step_id))) continue
      reached.add(target_step_id)
      grew = true
    }
  }
  for (const id of left) {
    if (!reached.has(id)) issues.step("STEP_UNREACHABLE", id, null, "no way leads from the trigger to this step")
  }
}
