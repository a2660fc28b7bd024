import type { Schema } from "effect"

/**
 * A template for a new workflow. A template is one row and one file: what it does, what it needs, and its graph. The created
 * workflow is like any other, and does not refer to the template.
 */
export interface Template {
  /** Lower case with dashes. */
  readonly key: string
  /** Increased with every change of the row, on `updated_at`. */
  readonly version: number
  readonly updated_at: string
  readonly name: string
  readonly description: string
  readonly bindings: ReadonlyArray<Binding>
  /** The body of a sample request; null: there is none. */
  readonly sample: Schema.JsonObject | null
  /** By the keys of its bindings. */
  readonly graph: (bound: Bound) => Graph
}

/** A resource of the team that a template needs. */
export interface Binding {
  readonly key: string
  readonly type: "destination" | "source" | "url"
  readonly description: string
}

export interface Bound {
  readonly [binding: string]: string
}

export interface Graph {
  readonly steps: ReadonlyArray<Schema.JsonObject>
  readonly edges: ReadonlyArray<Schema.JsonObject>
}

/** Makes a row; the compiler checks that its graph names only its own bindings. */
export const template = <const Keys extends string>(
  row: Omit<Template, "bindings" | "graph"> & {
    readonly bindings: ReadonlyArray<Binding & { readonly key: Keys }>
    readonly graph: (bound: { readonly [Key in Keys]: string }) => Graph
  }
): Template => row as unknown as Template

/** An edge; `from` is a step, or null for the trigger. */
export const edge = (from: string | null, to: string, more: Schema.JsonObject = {}): Schema.JsonObject =>
  Object.assign({ source_type: from === null ? "trigger" : "step", source_step_id: from, target_step_id: to }, more)

/** Edges from the trigger through these steps, one after the other. */
export const chain = (...steps: ReadonlyArray<string>): ReadonlyArray<Schema.JsonObject> =>
  steps.map((step, i) => edge(steps[i - 1] ?? null, step))

/** A step that calls an action of a provider. */
export const action = (
  id: string,
  name: string,
  [provider_key, action_key]: readonly [provider: string, action: string],
  invocation_inputs: Schema.JsonObject,
  config: Schema.JsonObject = {}
): Schema.JsonObject => ({
  id,
  kind: "action",
  name,
  action: { provider_key, action_key, version: "1.0.0" },
  invocation_inputs,
  config
})

/** A step of the formatter. */
export const format = (
  id: string,
  name: string,
  operation: string,
  inputs: Schema.JsonObject,
  options: Schema.JsonObject = {}
): Schema.JsonObject => action(id, name, ["formatter", operation], inputs, { formatter: { options } })

/** A step that sends to a destination; without inputs it sends the request as received. */
export const send = (
  id: string,
  name: string,
  resource_id: string,
  invocation_inputs: Schema.JsonObject | null = null,
  config: Schema.JsonObject = {}
): Schema.JsonObject => ({ id, kind: "destination", name, resource_id, invocation_inputs, config })
