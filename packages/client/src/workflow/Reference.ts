/**
 * References to values of a run, as typed paths: `trigger.body.customer.name` becomes `{{trigger.body.customer.name}}`. A
 * reference is known by its path only; the gateway looks the value up when the step runs.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- a value whose members nobody has described may have any member
export type Anything = any

declare const reference: unique symbol

/** A missing value is looked up like a present one. */
type Present<Value> = unknown extends Value ? Value : NonNullable<Value>

/** A reference to a list. */
export interface ListRef<Element> {
  readonly [reference]: ReadonlyArray<Element>
}

/**
 * A reference to a value of this type. A list is called: `lines(0).sku` is a member of its first element, and `lines().sku` the
 * list of this member of each element.
 */
export type Ref<Value> = unknown extends Value
  ? Anything
  : { readonly [reference]: Value } & (Value extends ReadonlyArray<infer Element>
      ? (index?: number) => Ref<Element>
      : Value extends object
        ? { readonly [Member in keyof Value]-?: Ref<Present<Value[Member]>> }
        : unknown)

/** The path of a reference, or of a reference with a fall-back value. */
const path = Symbol("path")

const word = /^[A-Za-z_][A-Za-z0-9_-]*$/

const referenceTo = (here: string): Anything =>
  new Proxy(() => undefined, {
    get: (_, member) => {
      if (member === path) return here
      if (member === Symbol.toPrimitive) return () => `{{${here}}}`
      if (typeof member === "symbol") return undefined
      return referenceTo(word.test(member) ? `${here === "" ? "" : `${here}.`}${member}` : `${here}["${member}"]`)
    },
    apply: (_, __, [index]: ReadonlyArray<number | undefined>) => referenceTo(`${here}[${index ?? ""}]`)
  })

/** References to the values at the root of a run. */
export const roots: Anything = referenceTo("")

const pathOf = (value: unknown): string | null =>
  typeof value === "function" ? ((value as { readonly [path]?: string })[path] ?? null) : null

/** The path of a reference into what begins a run, as settings of the workflow take it: `body.customer.id`. */
export const requestPathOf = (of: unknown): unknown => pathOf(of)?.replace(/^trigger\./, "") ?? of

/** The reference, or this JSON literal where its value is missing or null. */
export const or = <Value>(of: Ref<Value>, instead: string | number | boolean | null): Ref<Value> =>
  referenceTo(`${pathOf(of)} ?? ${JSON.stringify(instead)}`)

/** A text with references in it. */
export const text = (parts: TemplateStringsArray, ...values: ReadonlyArray<Templated>): string =>
  parts.reduce((before, part, index) => before + shown(values[index - 1]) + part)

const shown = (value: Templated | undefined): string => {
  const written = inputsOf(value)
  return typeof written === "string" ? written : JSON.stringify(written)
}

/** A value in which references stand beside plain values. */
export type Templated =
  | string
  | number
  | boolean
  | null
  | { readonly [reference]: unknown }
  | ReadonlyArray<Templated>
  | { readonly [member: string]: Templated }

/** The value as JSON: `written` says what a reference becomes. */
const jsonOf = (value: unknown, written: (path: string) => unknown): unknown => {
  const at = pathOf(value)
  if (at !== null) return written(at)
  if (Array.isArray(value)) return value.map((one) => jsonOf(one, written))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, jsonOf(one, written)]))
}

/** Inputs of a step: references become templates. */
export const inputsOf = (value: unknown): unknown => jsonOf(value, (at) => `{{${at}}}`)

/** Conditions have no templates: references become `$ref`. */
export const conditionsOf = (value: unknown): unknown => jsonOf(value, ($ref) => ({ $ref }))
