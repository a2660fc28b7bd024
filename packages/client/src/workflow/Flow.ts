import type { components } from "../schema.ts"
import type { formatterOutputs } from "./FormatterOutputs.ts"
import { type Anything, conditionsOf, inputsOf, type ListRef, type Ref, roots, type Templated } from "./Reference.ts"
import { type Triggers, triggersOf } from "./Triggers.ts"
import type { Arrived, CalledBack, Decided } from "./Waits.ts"

/**
 * Writes a workflow in code: the same JSON as one writes by hand, with references that the compiler checks. A flow is never
 * changed: each call returns a longer one.
 */

type Schemas = components["schemas"]
type Step = Schemas["WorkflowStep"]
type Edge = Schemas["WorkflowEdge"]
type Kind = Step["kind"]

/** A workflow as `PUT /workflows` takes it. */
export type WrittenWorkflow = Schemas["WorkflowWrite"] & { readonly steps: Array<Step>; readonly edges: Array<Edge> }

export type Settings = Pick<Schemas["WorkflowWrite"], "description" | "run_label" | "status" | "version">

/** The outputs of steps, by their ids. */
export type Outputs = object

/** A request of a batch. */
export interface BatchedRequest<Body> {
  readonly request_id: string
  readonly received_at: string
  readonly method: string
  readonly path: string
  readonly headers: Anything
  readonly query: Anything
  readonly body: Body
}

/** What a step can refer to: the request, the steps before it, and in a step for each element of a list, the element. */
export interface Refs<Body, Steps extends Outputs, Item> {
  readonly trigger: Ref<{
    readonly body: Body
    /** Of a workflow with `triggers.batch`: the requests that its run carries out. */
    readonly batch: ReadonlyArray<BatchedRequest<Body>>
    readonly headers: Anything
    readonly query: Anything
    readonly path: string
    readonly method: string
    readonly request_id: string
    readonly received_at: string
    readonly source: { readonly id: string; readonly name: string }
  }>
  readonly steps: Ref<{
    readonly [Id in keyof Steps]: {
      readonly output: Steps[Id]
      readonly status: string
      readonly error: {
        readonly code: string
        readonly message: string
        readonly status: number
        /** What the target has answered. */
        readonly response: Answered & { readonly truncated: boolean }
      }
    }
  }>
  readonly run: Ref<{
    readonly id: string
    readonly started_at: string
    readonly attempt: number
    /** The URLs of steps that wait, by their ids; those steps come later. The gateway refuses an id or a name that does not exist. */
    readonly waits: Anything
  }>
  readonly workflow: Ref<{ readonly id: string; readonly name: string; readonly version: number }>
  readonly source: Ref<{ readonly id: string; readonly name: string }>
  readonly item: Ref<Item>
  readonly item_index: Ref<number>
}

/** A value, or a function of the references that makes it. */
export type Given<Value, Body, Steps extends Outputs, Item = never> = Value | ((refs: Refs<Body, Steps, Item>) => Value)

const given = (value: unknown): unknown =>
  typeof value === "function" ? (value as (refs: Anything) => unknown)(roots) : value

export interface Answered {
  readonly status: number
  readonly headers: Anything
  readonly body: Anything
}

export interface Stored {
  readonly key: string
  readonly found: boolean
  readonly value: Anything
  readonly conflict: boolean
}

type OtherOutputs = typeof formatterOutputs

type Formatted<Operation extends string> = {
  readonly [Member in Operation extends keyof OtherOutputs ? OtherOutputs[Operation][number] : "result"]: Anything
}

/** What is known of the output of an action. */
type Called<Action extends string> = Action extends `formatter/${infer Operation}`
  ? Formatted<Operation>
  : Action extends "http/request"
    ? Answered
    : unknown

type ConfigOf<K extends Kind> = NonNullable<Extract<Step, { readonly kind: K }>["config"]>

/** How long a step waits at most. */
type Longest = Pick<ConfigOf<"wait">, "amount" | "unit">

export interface StepOptions<Config> {
  readonly name?: string
  readonly config?: Config
}

/** Another start of an edge than the step before; `port` and further members as in a written edge. */
export type From<Steps extends Outputs> =
  | "trigger"
  | (keyof Steps & string)
  | ({ readonly step: "trigger" | (keyof Steps & string) } & Partial<
      Pick<Edge, "condition" | "id" | "mapping" | "position"> & { readonly port: string }
    >)

type StoreOperation = Extract<Step, { readonly kind: "store" }>["config"]["operation"]

/** The inputs of an operation on a stored value. */
export interface StoreInputs {
  readonly key: Templated
  readonly value?: Templated
  readonly expected?: Templated
  readonly by?: Templated
  readonly expires_in_seconds?: Templated
}

interface Start {
  readonly step: string
  readonly port?: string
  readonly [member: string]: unknown
}

interface State {
  readonly written: Readonly<Record<string, unknown>>
  readonly steps: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly edges: ReadonlyArray<unknown>
  /** Where the edges to the next step begin. */
  readonly ends: ReadonlyArray<Start>
  /** The list for each of whose elements the next step runs, as members of its config. */
  readonly list: object | null
}

type Listed<Output, Item> = [Item] extends [never]
  ? Output
  : { readonly items: ReadonlyArray<Output>; readonly count: number }

declare const produced: unique symbol

/** A flow of any outputs, as a path of a branch may return it. */
export interface AnyFlow {
  readonly [produced]: unknown
  readonly toJSON: () => WrittenWorkflow
}

type OutputsOf<Made> = Made extends { readonly [produced]: infer Steps } ? Steps : never
type Joined<Union> = (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void
  ? All
  : never

/** A path of a branch: its conditions, or `fallback`, or neither for a path that is always taken; and the steps on it. */
export interface Path<Body, Steps extends Outputs> {
  readonly name?: string
  readonly when?: Given<Templated, Body, Steps>
  readonly fallback?: boolean
  readonly steps?: (path: Flow<Body, Steps>) => AnyFlow
}

type StepsOfPaths<Paths> = Joined<
  {
    [Key in keyof Paths]: Paths[Key] extends { readonly steps: (path: never) => infer Made } ? OutputsOf<Made> : {}
  }[keyof Paths]
>

export class Flow<Body, Steps extends Outputs, Item = never> {
  /** The outputs of its steps, for the compiler only. */
  declare readonly [produced]: Steps

  readonly #state: State

  constructor(state: State) {
    this.#state = state
  }

  /** A step of any kind, as it is written: for kinds and members that have no method. */
  step<const Id extends string>(
    id: Id,
    kind: string,
    members?: Given<Readonly<Record<string, Templated>>, Body, Steps, Item>
  ) {
    return this.#add<Record<Id, Listed<unknown, Item>>>({
      id,
      kind,
      ...(inputsOf(given(members)) as object | undefined)
    })
  }

  /** Continues if the conditions hold. */
  filter<const Id extends string>(id: Id, conditions: Given<Templated, Body, Steps>, options: StepOptions<never> = {}) {
    const config = { conditions: conditionsOf(given(conditions)) }
    return this.#add<Record<Id, { readonly matched: boolean }>>({ id, kind: "filter", ...options, config })
  }

  /** Waits for an amount of a unit, or until a time. */
  delay<const Id extends string>(id: Id, config: ConfigOf<"delay">, options: StepOptions<never> = {}) {
    return this.#add<Record<Id, { readonly scheduled_for: string; readonly released_at: string }>>({
      id,
      kind: "delay",
      ...options,
      config
    })
  }

  /**
   * Waits until somebody approves or rejects. What follows, follows the approval; follow the others with
   * `after({ step: id, port: "rejected" }, { step: id, port: "timed_out" })`. Earlier steps send the links of `run.waits`.
   */
  waitForApproval<const Id extends string>(id: Id, most: Longest, options: StepOptions<never> = {}) {
    return this.#add<Record<Id, Decided>>({ id, kind: "wait", ...options, config: { for: "approval", ...most } })
  }

  /**
   * Waits until another program calls the URL that earlier steps send (`run.waits`). What follows, follows the callback; follow the end of
   * the time with `after({ step: id, port: "timed_out" })`.
   */
  waitForCallback<const Id extends string>(id: Id, most: Longest, options: StepOptions<never> = {}) {
    return this.#add<Record<Id, CalledBack>>({ id, kind: "wait", ...options, config: { for: "callback", ...most } })
  }

  /**
   * Waits for a request at a source (`src_…`) that matches the filter, if there is one. What follows, follows the request; follow the end
   * of the time with `after({ step: id, port: "timed_out" })`.
   */
  waitForEvent<const Id extends string>(
    id: Id,
    source: string,
    { filter, ...most }: Longest & { readonly filter?: Given<Templated, Body, Steps> },
    options: StepOptions<never> = {}
  ) {
    return this.#add<Record<Id, Arrived>>({
      id,
      kind: "wait",
      resource_id: source,
      ...options,
      config: { for: "event", ...most },
      ...(filter === undefined ? {} : { invocation_inputs: { filter: inputsOf(given(filter)) } })
    })
  }

  /**
   * Calls a workflow (`wfl_…`) with an input, which is the body of its run, and continues with the result when that run has ended. Follow the
   * end of the time with `after({ step: id, port: "timed_out" })`.
   */
  workflow<const Id extends string>(
    id: Id,
    workflow: string,
    input?: Given<Templated, Body, Steps>,
    options: StepOptions<ConfigOf<"workflow">> = {}
  ) {
    type Output = {
      readonly run_id: string
      readonly workflow_id: string
      readonly outcome: string
      readonly result: Anything
      readonly released_at: string
    }
    return this.#add<Record<Id, Output>>({
      id,
      kind: "workflow",
      resource_id: workflow,
      ...(input === undefined ? {} : { invocation_inputs: { input: inputsOf(given(input)) } }),
      ...options
    })
  }

  /** Calls a saved action (`act_…`), or one of the catalog without credentials (`formatter/text.titlecase`). */
  action<const Id extends string, const Action extends string>(
    id: Id,
    action: Action,
    inputs?: Given<Readonly<Record<string, Templated>>, Body, Steps, Item>,
    options: StepOptions<ConfigOf<"action">> = {}
  ) {
    const [provider_key, ...keys] = action.split("/")
    const named = keys.length === 0 ? { resource_id: action } : { action: { provider_key, action_key: keys.join("/") } }
    return this.#add<Record<Id, Listed<Called<Action>, Item>>>({
      id,
      kind: "action",
      ...named,
      ...withInputs(inputs),
      ...options
    })
  }

  /** Calls an endpoint without credentials. Save an action for a call that has some, and name it in `action`. */
  http<const Id extends string>(
    id: Id,
    request: Given<
      { readonly url: Templated; readonly method?: string; readonly [input: string]: Templated | undefined },
      Body,
      Steps,
      Item
    >,
    options: StepOptions<ConfigOf<"action">> = {}
  ) {
    const action = { provider_key: "http", action_key: "request" }
    return this.#add<Record<Id, Listed<Answered, Item>>>({
      id,
      kind: "action",
      action,
      ...withInputs(request),
      ...options
    })
  }

  /** Sends to a destination (`des_…`). Parts of the request that are absent are those of the trigger. */
  destination<const Id extends string>(
    id: Id,
    destination: string,
    inputs?: Given<Readonly<Record<string, Templated>>, Body, Steps, Item>,
    options: StepOptions<ConfigOf<"destination">> = {}
  ) {
    return this.#add<Record<Id, Listed<Answered & { readonly duration_ms: number }, Item>>>({
      id,
      kind: "destination",
      resource_id: destination,
      ...withInputs(inputs),
      ...options
    })
  }

  /** Runs a transformation (`trs_…`). */
  transformation<const Id extends string>(
    id: Id,
    transformation: string,
    inputs?: Given<Readonly<Record<string, Templated>>, Body, Steps>,
    options: StepOptions<ConfigOf<"transformation">> = {}
  ) {
    type Output = Omit<Answered, "status"> & {
      readonly query: Anything
      readonly path: string
      readonly method: string
    }
    return this.#add<Record<Id, Output>>({
      id,
      kind: "transformation",
      resource_id: transformation,
      ...withInputs(inputs),
      ...options
    })
  }

  /** Reads or changes a value that the workflow keeps between its runs. A `compare_and_set` is left by `out`, or by `conflict`. */
  store<const Id extends string>(
    id: Id,
    operation: StoreOperation,
    inputs: Given<StoreInputs, Body, Steps, Item>,
    options: StepOptions<Partial<ConfigOf<"store">>> = {}
  ) {
    return this.#add<Record<Id, Listed<Stored, Item>>>({
      id,
      kind: "store",
      ...withInputs(inputs),
      ...options,
      config: { ...options.config, operation }
    })
  }

  /**
   * Continues on the paths that hold: on all of them, or on the first. What follows the branch follows the ends of its paths;
   * `end` is no such end.
   */
  branch<const Id extends string, Paths extends Readonly<Record<string, Path<Body, Steps>>>>(
    id: Id,
    paths: Paths,
    options: StepOptions<never> & { readonly evaluation?: "all" | "first" } = {}
  ): Flow<
    Body,
    Steps & Record<Id, { readonly matched: ReadonlyArray<string>; readonly fallback: boolean }> & StepsOfPaths<Paths>
  > {
    const { evaluation, ...more } = options
    const rules = Object.entries(paths).map(([key, path]) => ruleOf(key, path))
    const config = { ...(evaluation === undefined ? {} : { evaluation }), paths: rules }
    let state = this.#add({ id, kind: "branch", ...more, config }).#state
    const ends: Array<Start> = []
    for (const [key, { steps }] of Object.entries(paths)) {
      const path = new Flow<Body, Steps>({ ...state, ends: [{ step: id, port: `path_${key}` }] })
      state = Flow.#stateOf(steps === undefined ? path : steps(path))
      ends.push(...state.ends)
    }
    return new Flow({ ...state, ends })
  }

  /** The steps that follow when the step before has failed. What comes after them follows both ways. */
  onError<Made extends AnyFlow>(then: (path: Flow<Body, Steps>) => Made): Flow<Body, Steps & OutputsOf<Made>> {
    const { ends, steps } = this.#state
    const last = steps.at(-1)
    if (last === undefined) throw new Error("a flow without steps has none that can fail")
    const config = { ...(last["config"] as object | undefined), on_error: "branch" }
    const failing = [...steps.slice(0, -1), { ...last, config }]
    const start = { step: last["id"] as string, port: "error" }
    const made = Flow.#stateOf(then(new Flow<Body, Steps>({ ...this.#state, steps: failing, ends: [start] })))
    return new Flow({ ...made, ends: [...ends, ...made.ends] })
  }

  /**
   * The step that undoes the step before when the run has failed. It may refer to that one and to the steps before it. What follows,
   * follows the step that is undone.
   */
  compensateWith(
    undo: (path: Pick<Flow<Body, Steps>, "action" | "destination" | "http" | "step" | "store" | "workflow">) => AnyFlow
  ): Flow<Body, Steps> {
    const { steps } = this.#state
    const last = steps.at(-1)
    if (last === undefined) throw new Error("a flow without steps has none that can be undone")
    const config = last["config"] as { readonly compensate?: string } | undefined
    if (config?.compensate !== undefined) throw new Error(`${last["id"] as string} has a step that undoes it`)
    const { steps: made } = Flow.#stateOf(undo(this.#with({ ends: [] })))
    const [added, ...others] = made.slice(steps.length)
    if (added === undefined || others.length > 0) throw new Error("exactly one step undoes another")
    // The step that is undone stays the last one: an `onError` that follows is about it.
    const undone = { ...last, config: { ...config, compensate: added["id"] } }
    return this.#with({ steps: [...steps.slice(0, -1), added, undone] })
  }

  /** The next step runs once for each element of this list: one after the other, or up to `concurrency` at once. */
  forEach<Element>(
    list: (refs: Refs<Body, Steps, never>) => ListRef<Element>,
    options: { readonly concurrency?: number } = {}
  ): Pick<Flow<Body, Steps, Element>, "action" | "destination" | "http" | "step" | "store"> {
    return this.#with({ list: { for_each: inputsOf(given(list)), ...options } })
  }

  /**
   * What begins runs beside requests, and how runs wait for each other. A `key` is a path, or a reference into the request. Settings that
   * were written before stay, unless these name them.
   */
  triggers(settings: Triggers<Body>): Flow<Body, Steps, Item> {
    const { written } = this.#state
    const before = written["triggers"] as object | undefined
    return this.#with({ written: { ...written, triggers: { ...before, ...triggersOf(settings) } } })
  }

  /** The next step follows these steps, or the trigger, instead of the step before. */
  after(...starts: ReadonlyArray<From<Steps>>): Flow<Body, Steps> {
    return this.#with({ ends: starts.map((start) => (typeof start === "object" ? start : { step: start })) })
  }

  /** Nothing follows: a path of a branch that does not lead to what comes after the branch. */
  end(): Flow<Body, Steps> {
    return this.#with({ ends: [] })
  }

  /** The workflow as JSON, as the API takes it. */
  toJSON(): WrittenWorkflow {
    const { edges, steps, written } = this.#state
    return { ...written, steps, edges } as unknown as WrittenWorkflow
  }

  static #stateOf(flow: AnyFlow): State {
    return (flow as Flow<unknown, {}>).#state
  }

  #with(change: Partial<State>): Anything {
    return new Flow({ ...this.#state, ...change })
  }

  #add<Added extends Outputs>(step: Readonly<Record<string, unknown>>): Flow<Body, Steps & Added> {
    const { edges, ends, list, steps } = this.#state
    const id = step["id"] as string
    if (steps.some((other) => other["id"] === id)) throw new Error(`two steps have the id ${id}`)
    const added = list === null ? step : { ...step, config: { ...(step["config"] as object | undefined), ...list } }
    return this.#with({
      steps: [...steps, added],
      edges: [...edges, ...ends.map((start) => edgeTo(id, start))],
      ends: [{ step: id }],
      list: null
    })
  }
}

const ruleOf = (key: string, { fallback, name, when }: Omit<Path<never, never>, "steps">): unknown => ({
  key,
  ...(name === undefined ? {} : { name }),
  ...(when === undefined
    ? { rule: fallback === true ? "fallback" : "always" }
    : { rule: "conditions", conditions: conditionsOf(given(when)) })
})

const withInputs = (inputs: unknown): object =>
  inputs === undefined ? {} : { invocation_inputs: inputsOf(given(inputs)) }

const edgeTo = (target_step_id: string, { condition, mapping, port, step, ...more }: Start): unknown => ({
  ...(step === "trigger" ? { source_type: "trigger" } : { source_type: "step", source_step_id: step }),
  ...(port === undefined ? {} : { source_port: port }),
  target_step_id,
  ...more,
  ...(mapping === undefined ? {} : { mapping: inputsOf(mapping) }),
  ...(condition === undefined ? {} : { condition: conditionsOf(condition) })
})
