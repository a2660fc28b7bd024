import { isJsonObject } from "@tidegate/json/ExactNumber"
import type { Json } from "@tidegate/model/Rule"
import { decodeAll } from "@tidegate/rules/Decode"
import { isOfRequest } from "@tidegate/rules/Condition"
import { type CompiledFilter, compilingConditions, compilingFilter } from "@tidegate/rules/Filter"
import { PatternBounds } from "@tidegate/rules/PatternBounds"
import { didYouMean } from "@tidegate/model/NearestName"
import { compilingMapping, contextRoots, type Mapping } from "@tidegate/interpolation/Mapping"
import { Result, Schema } from "effect"
import type { Action, ActionCall, Catalog, SavedAction } from "./Catalog.ts"
import type { Edge, Step } from "./Definition.ts"
import { lookAtNames, refersToRun, wayFault } from "./ContextNames.ts"
import { onlyOwn } from "./Graph.ts"
import type { Issues } from "./Issue.ts"
import { limits } from "./Limits.ts"
import { listedOutput, outputFault } from "./OutputNames.ts"
import {
  commonSettings,
  compileRetry,
  defaultTimeoutMs,
  noRetry,
  note,
  type OnError,
  type RetryPolicy,
  type StepRetry
} from "./Settings.ts"
import type { Compiler, Context, Evaluate, Resumable, StepKind } from "./StepKind.ts"

/** The environment in which a step is compiled. */
export interface Surroundings {
  readonly catalog: Catalog
  readonly issues: Issues
  readonly stepIds: ReadonlySet<string>
  readonly isUpstream: (id: string) => boolean
  /** Null: not all edges are known. */
  readonly hasErrorEdge: boolean | null
  /** How many tokens the workflow may still have. */
  readonly tokens: { left: number }
  /** The same for patterns. */
  readonly patterns: PatternBounds
  /** The place of a step or an edge in the definition. */
  readonly placeOf: (step_id: string, edge_id: string | null) => string
  /** By the id of an earlier step: JSON Schema of its output; null: not known. */
  readonly outputs: ReadonlyMap<string, Schema.JsonObject | null>
  /** By the id of a step that waits for somebody outside: the names of its URLs. Null: not all steps are known. */
  readonly urls: ReadonlyMap<string, ReadonlyArray<string>> | null
}

export interface CompiledStep {
  /** As it was written, with its defaults. */
  readonly step: Step
  readonly kind: StepKind<unknown>
  readonly action: Action | null
  /** The inputs of its saved action. */
  readonly saved: Mapping | null
  /** For a transformation: the hash of the code that it is pinned to; null: the current code when it runs. */
  readonly code: string | null
  /** JSON Schema of its output; null: not known. */
  readonly output: Schema.JsonObject | null
  readonly inputs: Mapping | null
  readonly forEach: Mapping | null
  /** How many elements of its list are under way at once. */
  readonly concurrency: number
  readonly onError: OnError
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly evaluate: Evaluate
  readonly apart: ActionCall["apart"] | null
  /** The edges into it, in the written order. */
  readonly edges: ReadonlyArray<{
    readonly holds: ((context: Context) => boolean) | null
    readonly mapping: Mapping | null
  }>
}

interface Common {
  readonly timeout_ms?: number
  readonly retry?: StepRetry | null
  readonly on_error?: OnError
  readonly for_each?: string
  readonly concurrency?: number
}

/** Compiles a step of a valid graph. Faults go to `issues`; then the result must not be used. */
export function* compileStep(
  step: Step,
  kind: StepKind<unknown>,
  incoming: ReadonlyArray<Edge>,
  around: Surroundings
): Resumable<CompiledStep> {
  const compiler = new StepCompiler(step.id, around)
  compiler.resource(step, kind)
  const named = compiler.named(step, kind)
  const action = named?.action ?? compiler.action(step, kind)
  const call = action === null ? null : compiler.call(step, action)
  const common = compiler.common(step, kind, action)
  compiler.iterates = common.for_each !== undefined
  yield
  const own = decodeAll(kind.config, onlyOwn(step, kind), "config")
  if (Result.isFailure(own)) {
    for (const { message, path } of own.failure) compiler.issue("STEP_CONFIG_INVALID", within("config", path), message)
  }
  const compiled = Result.isSuccess(own) ? (kind.compile?.(step, own.success, compiler) ?? null) : null
  const evaluate = typeof compiled === "object" && compiled !== null ? yield* compiled : compiled
  yield
  const taken = action === null ? kind.inputs(step) : action.inputs
  compiler.inputNames(step.invocation_inputs, taken, "invocation_inputs")
  const saved = named === null ? null : yield* compiler.inputs(named.inputs, action, "resource_id")
  yield
  const inputs =
    step.invocation_inputs === null ? null : yield* compiler.inputs(step.invocation_inputs, action, "invocation_inputs")
  const forEach = common.for_each === undefined ? null : yield* compiler.list(common.for_each)
  const retry = compiler.retry(common.retry ?? null)
  const edges: Array<CompiledStep["edges"][number]> = []
  for (const edge of incoming) {
    yield
    edges.push(yield* compiler.edge(edge, action, taken))
  }
  const output = kind.output ?? action?.output ?? null
  return {
    output: forEach === null ? output : listedOutput(output),
    step: call === null ? step : { ...step, config: call.config },
    kind,
    action,
    code: step.resource_id === null ? null : (around.catalog.code?.(step.resource_id) ?? null),
    saved,
    inputs,
    forEach,
    concurrency: common.concurrency ?? 1,
    onError: common.on_error ?? "fail",
    retry,
    timeoutMs: common.timeout_ms ?? defaultTimeoutMs,
    evaluate: call === null ? evaluate : call.evaluate,
    apart: call?.apart ?? null,
    edges
  }
}

const within = (outer: string, path: string): string =>
  path === "" ? outer : path.startsWith("[") ? `${outer}${path}` : `${outer}.${path}`

const prefix = /^([a-z]+_)/

class StepCompiler implements Compiler {
  private readonly id: string
  private readonly around: Surroundings
  /** The id of the edge into the step that is being checked, if there is one. */
  private edgeId: string | null = null
  /** Whether the step runs for a list: then `item` is available. */
  iterates = false
  /** Maps a path in the inputs that are being checked to the written path. */
  private shown: (path: string) => string = asItIs

  constructor(id: string, around: Surroundings) {
    this.id = id
    this.around = around
  }

  issue: Compiler["issue"] = (code, field, message) => {
    if (this.edgeId === null) this.around.issues.step(code, this.id, field, message)
    else this.around.issues.edge(code, this.edgeId, field, message)
  }

  resource({ action, resource_id }: Step, kind: StepKind<unknown>): void {
    const isAction = kind.callsAction
    if (action !== null && !isAction) this.issue("STEP_CONFIG_INVALID", "action", `a ${kind.kind} step calls no action`)
    if (resource_id === null) {
      const needs = kind.resource !== null && (!kind.inline || (isAction && action === null))
      if (needs) this.issue("RESOURCE_REQUIRED", "resource_id", `takes the id of one (${kind.resource}…)`)
      return
    }
    if (kind.resource === null || prefix.exec(resource_id)?.[1] !== kind.resource) {
      const takes = kind.resource === null ? "takes none" : `takes an id like ${kind.resource}…`
      this.issue("RESOURCE_KIND_MISMATCH", "resource_id", `a ${kind.kind} step ${takes}`)
    }
    if (isAction && action !== null) {
      this.issue("STEP_CONFIG_INVALID", "action", "has no effect where resource_id names a saved action")
    }
  }

  named({ resource_id }: Step, kind: StepKind<unknown>): SavedAction | null {
    return kind.callsAction && resource_id !== null ? (this.around.catalog.saved?.(resource_id) ?? null) : null
  }

  action(step: Step, kind: StepKind<unknown>): Action | null {
    if (!kind.callsAction || step.action === null || step.resource_id !== null) return null
    const action = this.around.catalog.action(step.action)
    if (action === null) {
      this.issue("ACTION_UNKNOWN", "action", "no provider has this action")
      return null
    }
    return action
  }

  call(step: Step, action: Action): ActionCall | null {
    const call = action.compile(step)
    if (Result.isSuccess(call)) return call.success
    for (const { code, field, message } of call.failure) this.issue(code, field, message)
    return null
  }

  *inputs(written: Edge["mapping"], action: Action | null, field: string): Resumable<Mapping | null> {
    const bind = action?.bind
    if (bind === undefined) return yield* this.mapping(written, field)
    const judged = this.around.catalog.isStored === true ? Result.void : bind.judge(written)
    const inputs = Result.flatMap(judged, () => bind.inputs(written))
    if (Result.isFailure(inputs)) {
      this.issue("FORMATTER_CONFIG_INVALID", within(field, inputs.failure.input), inputs.failure.message)
      return null
    }
    this.shown = bind.shown
    const mapping = yield* this.mapping(inputs.success, field)
    this.shown = asItIs
    return mapping
  }

  common(step: Step, kind: StepKind<unknown>, action: Action | null): Common {
    const settings = kind.settings.filter((name) => !(action?.pure === true && withoutEffectWithin.has(name)))
    const fields = Object.fromEntries(settings.map((name) => [name, commonSettings[name]]))
    const written = Object.fromEntries(
      Object.entries(step.config).filter(([member]) => !Object.hasOwn(kind.config.fields, member))
    )
    // The kind checks its own settings; they are listed here only as suggestions for misspelled names.
    const own = Object.fromEntries(
      Object.keys(kind.config.fields).map((name) => [name, Schema.optionalKey(Schema.Unknown)])
    )
    const read = decodeAll(Schema.Struct({ ...own, ...fields, note }), written, `a ${kind.kind} step's config`)
    if (Result.isFailure(read)) {
      for (const { message, path } of read.failure) {
        this.issue(path.startsWith("retry") ? "RETRY_INVALID" : "STEP_CONFIG_INVALID", within("config", path), message)
      }
      return {}
    }
    const common = read.success as Common
    if (common.concurrency !== undefined && common.for_each === undefined) {
      this.issue("STEP_CONFIG_INVALID", "config.concurrency", "has no effect without for_each")
    }
    if (common.on_error === "branch" && this.around.hasErrorEdge === false) {
      this.issue("STEP_CONFIG_INVALID", "config.on_error", "branch needs an edge from the step's error port")
    }
    if (common.on_error !== "branch" && this.around.hasErrorEdge === true) {
      this.issue(
        "STEP_CONFIG_INVALID",
        "config.on_error",
        "an edge from the error port has no effect unless this is branch"
      )
    }
    return common
  }

  retry(written: StepRetry | null): RetryPolicy {
    if (written === null) return noRetry
    const policy = compileRetry(written)
    if (Result.isSuccess(policy)) return policy.success
    this.issue("RETRY_INVALID", `config.retry.response_status_codes[${policy.failure.index}]`, policy.failure.message)
    return noRetry
  }

  inputNames(inputs: object | null, taken: ReadonlyArray<string> | null, field: string): void {
    if (taken === null || inputs === null) return
    for (const name of Object.keys(inputs)) {
      if (taken.includes(name)) continue
      if (this.around.issues.isFull) return
      const known = taken.length === 0 ? "takes no inputs" : `takes ${taken.join(", ")}`
      this.issue(
        "STEP_CONFIG_INVALID",
        within(field, name),
        `is no input of this step, which ${known}${didYouMean(name, taken)}`
      )
    }
  }

  mapping(value: unknown, field: string): Resumable<Mapping | null> {
    return this.compiled(value, field, this.iterates ? contextRoots : withoutItem)
  }

  /** The list of a step that runs for one. It is resolved before there is an element. */
  *list(written: string): Resumable<Mapping | null> {
    const list = yield* this.compiled(written, "config.for_each", withoutItem)
    if (list?.references.length === 0) {
      this.issue("STEP_CONFIG_INVALID", "config.for_each", "is a template that gives a list")
    }
    return list
  }

  private *compiled(value: unknown, field: string, roots: ReadonlyArray<string>): Resumable<Mapping | null> {
    const { tokens } = this.around
    if (tokens.left < 0) return null
    const compiled = yield* compilingMapping(value, roots)
    if (Result.isFailure(compiled)) {
      this.issue("TEMPLATE_INVALID", within(field, this.shown(compiled.failure.path)), compiled.failure.message)
      return null
    }
    const { references } = compiled.success
    tokens.left -= references.length
    if (tokens.left < 0) {
      this.issue("TEMPLATE_INVALID", field, `the workflow holds more than ${limits.tokens} tokens`)
      return null
    }
    for (const { path, root, way } of references) {
      const at = within(field, this.shown(path))
      const [id = null, part, ...names] = way
      if (root === "steps") this.reference(id, at)
      if (this.around.catalog.isStored === true) continue
      const fault = wayFault([root, ...way])
      if (fault !== null) this.issue("TEMPLATE_INVALID", at, fault)
      else if (root === "steps" && id !== null && part === "output") this.output(id, names, at)
      else if (root === "trigger" && id === "body") this.body(way.slice(1), at)
      else if (root === "run" && id === "waits") this.url(way.slice(1), at)
    }
    return compiled.success
  }

  /** Whether the names may find something in the step's output; warns otherwise. */
  private output(id: string, names: ReadonlyArray<string | null>, at: string): boolean {
    const { issues, outputs, placeOf } = this.around
    const fault = outputFault(outputs.get(id) ?? null, names)
    if (fault === null) return true
    issues.warn("OUTPUT_MEMBER_UNKNOWN", `${placeOf(this.id, this.edgeId)}.${at}`, `of the step ${id}, the ${fault}`)
    return false
  }

  /** The same for the body of what begins the run. */
  private body(names: ReadonlyArray<string | null>, at: string): boolean {
    const { catalog, issues, placeOf } = this.around
    const { body = null } = catalog
    const fault = outputFault(body, names, "body")
    if (fault !== null) {
      issues.warn("TRIGGER_MEMBER_UNKNOWN", `${placeOf(this.id, this.edgeId)}.${at}`, `of the source, the ${fault}`)
    }
    return body !== null && fault === null
  }

  /** A URL of a step that waits. Nobody could end the wait if it were misspelled. */
  private url([id, name]: ReadonlyArray<string | null | undefined>, at: string): void {
    const { urls } = this.around
    if (id === undefined || urls === null) return
    const names = id === null ? undefined : urls.get(id)
    if (names === undefined) {
      const meant = id === null ? "" : didYouMean(id, urls.keys())
      this.issue("TEMPLATE_REFERENCE_UNKNOWN", at, `names no step that waits for an approval or a callback${meant}`)
    } else if (name !== undefined && !names.some((known) => known === name)) {
      const meant = name === null ? "" : didYouMean(name, names)
      this.issue("TEMPLATE_INVALID", at, `run.waits.${id} has only ${names.join(" and ")}${meant}`)
    }
  }

  private reference(id: string | null, at: string): void {
    if (id === null || !this.around.stepIds.has(id)) {
      const meant = id === null ? "" : didYouMean(id, this.around.stepIds)
      this.issue("TEMPLATE_REFERENCE_UNKNOWN", at, `names no step of this workflow${meant}`)
    } else if (!this.around.isUpstream(id)) {
      this.issue("TEMPLATE_REFERENCE_NOT_UPSTREAM", at, `the step ${id} does not lead to this one`)
    }
  }

  *condition(condition: unknown, field: string): Resumable<(context: Context) => boolean> {
    const { patterns } = this.around
    if (patterns.isExceeded) return never
    const compiled = yield* this.compiledCondition(condition, field, patterns)
    // A condition that does not compile is reported as such.
    if (compiled === null) return never
    this.names(condition, field)
    return compiled
  }

  /** Checks the names that a condition reads and compares with. Stored conditions stay as they were written. */
  private names(condition: unknown, field: string): void {
    if (this.around.catalog.isStored === true) return
    lookAtNames(condition, {
      fault: (path, message) => {
        this.issue("CONDITION_INVALID", within(field, path), message)
      },
      step: (id, path) => {
        this.reference(id, within(field, path))
      },
      output: (id, names, path) => this.output(id, names, within(field, path)),
      body: (names, path) => this.body(names, within(field, path))
    })
  }

  private *compiledCondition(
    condition: unknown,
    field: string,
    patterns: PatternBounds
  ): Resumable<((context: Context) => boolean) | null> {
    if (isOfRequest(condition) && !refersToRun(condition)) {
      const filter = yield* compilingFilter(condition, { patterns })
      if (Result.isSuccess(filter)) return matching(filter.success)
      this.issue("CONDITION_INVALID", within(field, filter.failure.path), filter.failure.message)
      return null
    }
    if (!isJsonObject(condition)) {
      this.issue("CONDITION_INVALID", field, "takes an object")
      return null
    }
    const compiled = yield* compilingConditions(condition, { subject: "context", patterns })
    if (Result.isSuccess(compiled)) return (context) => compiled.success(context as unknown as Json)
    this.issue("CONDITION_INVALID", within(field, compiled.failure.path), compiled.failure.message)
    return null
  }

  *filter(id: string): Resumable<((context: Context) => boolean) | null> {
    const conditions = this.around.catalog.filter?.(id)
    if (conditions === undefined) return null
    const filter = yield* compilingFilter(conditions as object, { patterns: PatternBounds.stored() })
    if (Result.isSuccess(filter)) return matching(filter.success)
    this.issue("CONDITION_INVALID", "resource_id", filter.failure.message)
    return null
  }

  *edge(
    edge: Edge,
    action: Action | null,
    taken: ReadonlyArray<string> | null
  ): Resumable<CompiledStep["edges"][number]> {
    this.edgeId = edge.id
    this.inputNames(edge.mapping, taken, "mapping")
    const compiled = {
      holds: edge.condition === null ? null : yield* this.condition(edge.condition, "condition"),
      mapping: Object.keys(edge.mapping).length === 0 ? null : yield* this.inputs(edge.mapping, action, "mapping")
    }
    this.edgeId = null
    return compiled
  }
}

const matching =
  (filter: CompiledFilter) =>
  ({ trigger: { body, headers, path, query } }: Context): boolean =>
    filter.failingTargets({ body: () => body, headers, path, query } as never).length === 0

const withoutItem = contextRoots.filter((root) => root !== "item" && root !== "item_index")

/** Settings that have no effect on a step that stays within the process. */
const withoutEffectWithin: ReadonlySet<string> = new Set(["retry", "concurrency", "compensate"])

const never = (): boolean => false

const asItIs = (path: string): string => path
