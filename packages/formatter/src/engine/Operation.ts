import type { Schema } from "effect"
import type { FormatterCode } from "@tidegate/model/FormatterCode"
import type { Library } from "./Libraries.ts"
import type { Choice, Field, Fields, ValuesOf, WarningCode } from "./Field.ts"

/**
 * What a list in a line item field means: the operation runs for each element (`map`), the list is the operation's input
 * (`aggregate`), or it is refused (`reject`).
 */
export type LinePolicy = "map" | "aggregate" | "reject"

export type Output = Readonly<Record<string, Schema.Json>>

/**
 * Resumable work for one element, for operations whose libraries are slow compared with the length of the text. Each step may block the event loop
 * for as long as an element may, and calls `spend` with its cost before it begins.
 */
export type Parts = Generator<void, Output, void>

/** What an operation may use besides its inputs. */
export interface Call {
  /** The present time, in milliseconds since 1970. */
  readonly anchor: number
  readonly warn: (code: WarningCode, message: string, field?: string) => void
  /** A number in [0, 1), derived from the run's seed. */
  readonly random: () => number
  /** Counts about this many microseconds for the following work. Throws a `Fault` if the limit is exceeded. */
  readonly spend: (micros: number) => void
  /** Milliseconds of processor time, for loops whose cost is unknown in advance. */
  readonly clock: () => number
}

export interface Cost {
  /** Microseconds of each call. */
  readonly call: number
  /** Nanoseconds for each character of its texts, in the worst case. */
  readonly character: number
  /** Number of characters from which it always runs in a separate thread, because its time or memory is many times that of its texts. */
  readonly apart: number
}

/** An operation in the form of the engine and the catalog. */
export interface Operation {
  readonly key: string
  readonly label: string
  readonly description: string
  readonly since: string
  readonly deterministic: boolean
  readonly fields: Fields
  /** Fields that are shown only after a choice. */
  readonly dynamic: ReadonlyArray<{
    readonly when: { readonly field: string; readonly in: ReadonlyArray<string> }
    readonly fields: ReadonlyArray<string>
  }>
  readonly lines: LinePolicy
  /** For a list input: names under which its elements may be written instead. */
  readonly elements: Readonly<Record<string, ReadonlyArray<string>>>
  /** Validates the options together, before there are inputs. Throws a `Fault`. */
  readonly judge: ((options: Readonly<Record<string, unknown>>) => void) | null
  /** Set if the options determine the policy. */
  readonly linesFor: ((options: Readonly<Record<string, unknown>>) => LinePolicy) | null
  readonly output: Schema.JsonObject
  /** The result for an empty element or an empty required input, without running the operation. Null: the operation runs with it. */
  readonly empty: Output | null
  readonly warnings: ReadonlyArray<WarningCode>
  readonly errors: ReadonlyArray<FormatterCode>
  readonly limits: Readonly<Record<string, number>>
  readonly cost: Cost
  /** Libraries that take more than a few milliseconds to load: each is loaded in an event-loop iteration of its own. */
  readonly loads: ReadonlyArray<Library>
  readonly sample: { readonly inputs: Schema.JsonObject; readonly options: Schema.JsonObject; readonly output: Output }
  readonly run: (values: Readonly<Record<string, unknown>>, call: Call) => Output | Parts
}

interface Declaration<F extends Fields> extends Pick<Operation, "key" | "label" | "description" | "lines" | "sample"> {
  readonly fields: F
  readonly since?: string
  readonly random?: boolean
  readonly dynamic?: Operation["dynamic"]
  readonly elements?: Operation["elements"]
  readonly judge?: (options: ValuesOf<F>) => void
  readonly linesFor?: (options: Partial<ValuesOf<F>>) => LinePolicy
  readonly output: Readonly<Record<string, Schema.JsonObject>>
  /** Additional optional members, by the pattern of their names. */
  readonly others?: Readonly<Record<string, Schema.JsonObject>>
  /** Optional members. */
  readonly optional?: ReadonlyArray<string>
  readonly empty?: Output | null
  readonly warnings?: ReadonlyArray<WarningCode>
  readonly errors?: ReadonlyArray<FormatterCode>
  readonly limits?: Readonly<Record<string, number>>
  readonly cost?: Partial<Cost>
  readonly loads?: ReadonlyArray<Library>
  readonly run: (values: ValuesOf<F>, call: Call) => Output | Parts
}

const ofAll: ReadonlyArray<FormatterCode> = [
  "FORMATTER_INPUT_REQUIRED",
  "FORMATTER_INPUT_INVALID",
  "FORMATTER_LIMIT_EXCEEDED",
  "FORMATTER_OUTPUT_TOO_LARGE",
  "FORMATTER_TIMEOUT"
]

/** Declares an operation. `limits.characters` limits its inputs, if a library allows fewer than the general limit. */
export const operation = <const F extends Fields>(declared: Declaration<F>): Operation => {
  const {
    cost,
    empty,
    errors = [],
    limits = {},
    loads = [],
    lines,
    linesFor,
    optional = [],
    others,
    output,
    random = false
  } = declared
  // Operations with `map` refuse a list within a list.
  const rejects = lines !== "aggregate" || linesFor !== undefined
  return {
    key: declared.key,
    label: declared.label,
    description: declared.description,
    since: declared.since ?? "1.0.0",
    deterministic: !random,
    fields: declared.fields,
    dynamic: declared.dynamic ?? [],
    lines,
    elements: declared.elements ?? {},
    judge: (declared.judge as Operation["judge"] | undefined) ?? null,
    linesFor: (linesFor as Operation["linesFor"] | undefined) ?? null,
    output: {
      type: "object",
      properties: output,
      ...(others === undefined ? {} : { patternProperties: others }),
      required: Object.keys(output).filter((name) => !optional.includes(name))
    },
    empty: empty === undefined ? null : empty,
    warnings: [
      "TEMPLATE_VALUE_MISSING",
      "INPUT_COERCED",
      "INPUT_EMPTY",
      ...(lines === "map" ? (["LINE_ITEM_LENGTH_MISMATCH"] as const) : []),
      ...(declared.warnings ?? [])
    ],
    errors: [
      ...ofAll,
      ...(rejects ? (["FORMATTER_LINE_ITEMS_NOT_SUPPORTED"] as const) : []),
      ...errors.filter((code) => !ofAll.includes(code))
    ],
    limits,
    loads,
    cost: { call: cost?.call ?? 2, character: cost?.character ?? 20, apart: cost?.apart ?? Infinity },
    sample: declared.sample,
    run: declared.run as unknown as Operation["run"]
  }
}

/** Schemas of outputs. */
export const string = { type: "string" } as const
export const int = { type: "integer" } as const
export const num = { type: "number" } as const
export const bool = { type: "boolean" } as const
export const anything = {} as const
export const nullable = (schema: Schema.JsonObject): Schema.JsonObject => ({ anyOf: [schema, { type: "null" }] })
export const array = (items: Schema.JsonObject): Schema.JsonObject => ({ type: "array", items })
export const either = (...anyOf: ReadonlyArray<Schema.JsonObject>): Schema.JsonObject => ({ anyOf })
export const object = { type: "object" } as const

export type { Choice, Field }
