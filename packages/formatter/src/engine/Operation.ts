import type { Schema } from "effect"
import type { FormatterCode } from "@tidegate/model/FormatterCode"
import type { Library } from "./Libraries.ts"
import type { Choice, Field, Fields, ValuesOf, WarningCode } from "./Field.ts"

/**
 * What a list in a field of line items means: the operation is run for each element (`map`), the list is what it works on
 * (`aggregate`), or it is refused (`reject`).
 */
export type LinePolicy = "map" | "aggregate" | "reject"

export type Output = Readonly<Record<string, Schema.Json>>

/**
 * The work of one element in parts, each of which holds the loop for as long as an element may: of operations whose libraries are slow beside the length of
 * a text. What a part may cost, it spends before it begins.
 */
export type Parts = Generator<void, Output, void>

/** What an operation may use beside its inputs: nothing else reaches it. */
export interface Call {
  /** What is now, in milliseconds since 1970. */
  readonly anchor: number
  readonly warn: (code: WarningCode, message: string, field?: string) => void
  /** A number in [0, 1), drawn from the run's seed. */
  readonly random: () => number
  /** Says that what follows takes about so many microseconds; ends the run when it has taken all it may. */
  readonly spend: (micros: number) => void
  /** Milliseconds of the processor: for loops whose steps cannot be foreseen. */
  readonly clock: () => number
}

export interface Cost {
  /** Microseconds of a call. */
  readonly call: number
  /** Nanoseconds of a character of its texts, at worst. */
  readonly character: number
  /** Characters from which on it is run apart from the event loop, whatever those two say: what it spends, or holds, is many times its texts. */
  readonly apart: number
}

/** An operation as the engine and the catalog see it. */
export interface Operation {
  readonly key: string
  readonly label: string
  readonly description: string
  readonly since: string
  readonly deterministic: boolean
  readonly fields: Fields
  /** Fields that are shown after a choice. */
  readonly dynamic: ReadonlyArray<{
    readonly when: { readonly field: string; readonly in: ReadonlyArray<string> }
    readonly fields: ReadonlyArray<string>
  }>
  readonly lines: LinePolicy
  /** Of an input that is a list, the names that its elements may be written under instead. */
  readonly elements: Readonly<Record<string, ReadonlyArray<string>>>
  /** Judges what options say together, before there is an input. Throws a `Fault`. */
  readonly judge: ((options: Readonly<Record<string, unknown>>) => void) | null
  /** Where the options decide. */
  readonly linesFor: ((options: Readonly<Record<string, unknown>>) => LinePolicy) | null
  readonly output: Schema.JsonObject
  /** What an empty element, or an empty required input, gives without a run. Null: the operation is run with it. */
  readonly empty: Output | null
  readonly warnings: ReadonlyArray<WarningCode>
  readonly errors: ReadonlyArray<FormatterCode>
  readonly limits: Readonly<Record<string, number>>
  readonly cost: Cost
  /** Libraries that take more than a few milliseconds to load: they are loaded one after the other, with turns of the loop between. */
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
  /** Members that are there now and then, by their pattern. */
  readonly others?: Readonly<Record<string, Schema.JsonObject>>
  /** Members that are not always there. */
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

/** Declares an operation: `limits.characters` is what its inputs may have, where a library allows fewer than a text may have. */
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
  // Those that map refuse a list within a list.
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
