import { isJsonNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { type Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { checkZone } from "../date/Zone.ts"
import { numberIn } from "../number/Numerals.ts"
import { localeOf } from "./Locale.ts"
import { Fault, previewOf, tooMuch } from "./Fault.ts"
import type { Choice, Field, FieldType, Reading } from "./Field.ts"
import { limits } from "./Limits.ts"
import { regions } from "./Regions.ts"

/** The kinds of fields of operations. The operation's row decides which are mapped and which are options. */

interface About {
  readonly required?: boolean
  readonly lines?: boolean
  readonly help?: string
}

const make = <A>(
  label: string,
  type: FieldType,
  about: Partial<Omit<Field<A>, "label" | "type" | "read" | "absent">>,
  read: Field<A>["read"],
  absent: Field<A>["absent"]
): Field<A> => ({
  label,
  type,
  mappable: true,
  required: false,
  default: null,
  lines: false,
  choices: null,
  custom: false,
  minimum: null,
  maximum: null,
  help: null,
  judge: null,
  ...about,
  read,
  absent
})

const invalid = (at: Reading, value: unknown, takes: string): Fault =>
  new Fault("FORMATTER_INPUT_INVALID", `${at.field} takes ${takes}`, {
    field: at.field,
    value_preview: previewOf(value)
  })

/** Limits the length of a text and replaces lone surrogates, so that PostgreSQL, JSON and every operation can handle it. */
export const bounded = (text: string, at: Reading, bytes: number = limits.string_bytes): string => {
  if (text.length * 3 > bytes) {
    const actual = text.length > bytes ? text.length : Buffer.byteLength(text)
    if (actual > bytes) throw tooMuch(`${at.field} is too long`, bytes, actual, at.field)
  }
  return text.isWellFormed() ? text : text.toWellFormed()
}

const scalarOf = (value: unknown, at: Reading, bytes?: number): string => {
  if (typeof value === "string") return bounded(value, at, bytes)
  if (isJsonNumber(value) || typeof value === "boolean") return String(value)
  throw invalid(at, value, "a text")
}

/** A scalar as text. A number or boolean is written as in JSON, with a warning. */
const textOf = (value: unknown, at: Reading, bytes?: number): string => {
  const read = scalarOf(value, at, bytes)
  if (typeof value !== "string") at.warn("INPUT_COERCED", `${at.field} was no text`, at.field)
  return read
}

/** A text. A number or a boolean is accepted and written as in JSON. */
export const text = (
  label: string,
  about: About & { readonly long?: boolean; readonly bytes?: number } = {}
): Field<string> => {
  const { bytes, long, ...rest } = about
  return make(
    label,
    long === true ? "text" : "string",
    rest,
    (value, at) => textOf(value, at, bytes),
    () => ""
  )
}

/** A text or a number; neither causes a warning. */
export const quantity = (label: string, about: About = {}): Field<string> =>
  make(label, "string", about, scalarOf, () => "")

const special: Readonly<Record<string, string>> = {
  "[:space:]": " ",
  "[:s:]": " ",
  "[:tab:]": "\t",
  "[:t:]": "\t",
  "[:newline:]": "\n",
  "[:n:]": "\n",
  "[:return:]": "\r",
  "[:r:]": "\r"
}

/** A text in which `[:space:]` and similar names stand for characters that cannot be typed into a form. */
export const symbols = (
  label: string,
  about: About & { readonly default?: string; readonly maximum?: number } = {}
): Field<string> => {
  const absent = (about.default ?? "").replaceAll(/\[:[a-z]+:\]/g, (found) => special[found] ?? found)
  return make(
    label,
    "string",
    { ...about, default: about.default ?? null },
    (value, at) => {
      const read = textOf(value, at)
      if (about.maximum !== undefined && !Characters.isUpTo(read, about.maximum))
        throw tooMuch(`${at.field} has too many characters`, about.maximum, Characters.count(read), at.field)
      return read.includes("[:") ? read.replaceAll(/\[:[a-z]+:\]/g, (found) => special[found] ?? found) : read
    },
    () => absent
  )
}

interface Bounds extends About {
  readonly minimum?: number
  readonly maximum?: number
}

const within = (value: number, { maximum, minimum }: Bounds, at: Reading, given: unknown): number => {
  if ((minimum !== undefined && value < minimum) || (maximum !== undefined && value > maximum)) {
    throw invalid(at, given, `a number from ${minimum ?? "any"} to ${maximum ?? "any"}`)
  }
  return value
}

/** Converts an exact number to a JavaScript number, which is precise enough for an operation's settings. Other values stay unchanged. */
const plainOf = (value: unknown): unknown =>
  typeof value === "string"
    ? Number(numberIn(value, ".") ?? "none")
    : isJsonNumber(value)
      ? Number(String(value))
      : value

const wholeOf = (value: unknown, bounds: Bounds, at: Reading): number => {
  const read = plainOf(value)
  if (!Number.isSafeInteger(read)) throw invalid(at, value, "a whole number")
  return within(read as number, bounds, at, value)
}

/** A whole number; null if it is missing and has no default. */
export const integer = <const D extends number | null = null>(
  label: string,
  bounds: Bounds & { readonly default?: D } = {}
): Field<number | (D extends number ? never : null)> =>
  make<number | null>(
    label,
    "integer",
    { ...bounds, default: bounds.default ?? null },
    (value, at) => (value === "" ? (bounds.default ?? null) : wholeOf(value, bounds, at)),
    () => bounds.default ?? null
  ) as Field<number | (D extends number ? never : null)>

/** A number, as JSON or as text; null if it is missing and has no default. */
export const number = <const D extends number | null = null>(
  label: string,
  bounds: Bounds & { readonly default?: D } = {}
): Field<number | (D extends number ? never : null)> =>
  make<number | null>(
    label,
    "number",
    { ...bounds, default: bounds.default ?? null },
    (value, at) => {
      if (value === "") return bounds.default ?? null
      const read = plainOf(value)
      if (typeof read !== "number" || !Number.isFinite(read)) throw invalid(at, value, "a number")
      return within(read, bounds, at, value)
    },
    () => bounds.default ?? null
  ) as Field<number | (D extends number ? never : null)>

/** A boolean. */
export const flag = (label: string, preset = false, help?: string): Field<boolean> =>
  make(
    label,
    "boolean",
    { default: preset, ...(help === undefined ? {} : { help }) },
    (value, at) => {
      if (typeof value === "boolean") return value
      if (value === "true" || value === "false") return value === "true"
      throw invalid(at, value, "true or false")
    },
    () => preset
  )

interface Custom<C> {
  readonly read: (value: unknown, at: Reading) => C | null
  readonly takes: string
}

/** One of several values. */
export const select = <const V extends string>(
  label: string,
  values: Readonly<Record<V, string>>,
  preset: NoInfer<V> | null
): Field<V> => selectOr<V, never>(label, values, preset, null)

/** One of several values, or any other that `custom` accepts. */
export const selectOr = <const V extends string, C>(
  label: string,
  values: Readonly<Record<V, string>>,
  preset: NoInfer<V> | null,
  custom: Custom<C> | null
): Field<V | C> => {
  const choices = (Object.entries(values) as Array<[V, string]>).map(([value, name]): Choice => ({
    value,
    label: name,
    sample: null
  }))
  const known = new Set<unknown>(choices.map(({ value }) => value))
  const takes = `one of ${choices.map(({ value }) => value).join(", ")}${custom === null ? "" : `, or ${custom.takes}`}`
  return make<V | C>(
    label,
    "select",
    { default: preset, choices, custom: custom !== null, required: preset === null },
    (value, at) => {
      const read = typeof value === "number" ? String(value) : value
      if (known.has(read)) return read as V
      const other = custom?.read(value, at) ?? null
      if (other === null) throw invalid(at, value, takes)
      return other
    },
    () => preset as V
  )
}

/** Whether a value is missing or an empty text. */
export const isEmpty = (value: unknown): boolean => value === null || value === undefined || value === ""

/** Any value. */
export const any = (label: string, about: About & { readonly default?: string } = {}): Field<Schema.Json> =>
  make<Schema.Json>(
    label,
    "any",
    about,
    (value, at) => (typeof value === "string" ? bounded(value, at) : (value as Schema.Json)),
    () => about.default ?? null
  )

/** A list; a single value becomes a list of one. */
export const list = (
  label: string,
  about: About & { readonly minimum?: number; readonly maximum?: number } = {}
): Field<ReadonlyArray<Schema.Json>> =>
  make<ReadonlyArray<Schema.Json>>(
    label,
    "list",
    about,
    (value, at) => {
      const read: ReadonlyArray<unknown> = Array.isArray(value) ? value : [value]
      const most = about.maximum ?? limits.line_items
      if (read.length > most) throw tooMuch(`${at.field} has too many elements`, most, read.length, at.field)
      if (read.length < (about.minimum ?? 0)) throw invalid(at, value, `at least ${about.minimum} elements`)
      return read.map((one) => (typeof one === "string" ? bounded(one, at) : (one as Schema.Json)))
    },
    () => []
  )

export type Pairs = ReadonlyArray<readonly [key: string, value: Schema.Json]>

const pairsOf = (value: unknown): ReadonlyArray<readonly [unknown, unknown]> | null => {
  if (Array.isArray(value)) {
    const pairs: Array<readonly [unknown, unknown]> = []
    for (const pair of value as ReadonlyArray<unknown>) {
      if (Array.isArray(pair) && pair.length === 2) pairs.push([pair[0], pair[1]])
      else if (isJsonObject(pair) && Object.hasOwn(pair, "key")) {
        pairs.push([pair["key"], Object.hasOwn(pair, "value") ? pair["value"] : null])
      } else return null
    }
    return pairs
  }
  return isJsonObject(value) ? Object.entries(value) : null
}

/** Keys with values, in order: an object, or a list of `[key, value]` or `{"key": …, "value": …}`. */
export const pairs = (
  label: string,
  about: About & { readonly minimum?: number; readonly maximum: number }
): Field<Pairs> =>
  make<Pairs>(
    label,
    "key_value",
    about,
    (value, at) => {
      const read = pairsOf(value)
      if (read === null) throw invalid(at, value, "keys with values")
      if (read.length > about.maximum)
        throw tooMuch(`${at.field} has too many keys`, about.maximum, read.length, at.field)
      if (read.length < (about.minimum ?? 0)) throw invalid(at, value, "at least one key")
      return read.map(([key, one]) => [
        scalarOf(key, at),
        typeof one === "string" ? bounded(one, at) : ((one ?? null) as Schema.Json)
      ])
    },
    () => []
  )

/** A date in any form; the date operations parse it. */
export const moment = (label: string, about: About = {}): Field<string | number | null> =>
  make<string | number | null>(
    label,
    "datetime",
    about,
    (value, at) => {
      // Dates never have more digits than a JavaScript number can hold.
      if (isJsonNumber(value)) return Number(value)
      if (typeof value !== "string") throw invalid(at, value, "a date")
      return bounded(value, at)
    },
    () => null
  )

/** The name of a time zone. */
export const zone = (label: string): Field<string> =>
  make(
    label,
    "timezone",
    { default: "UTC", judge: checkZone },
    (value, at) => (value === "" ? at.timezone : textOf(value, at)),
    ({ timezone }) => timezone
  )

/** A locale, as `en-US` or `en_US`. */
export const locale = (preset: string): Field<string> =>
  make(
    "Locale",
    "string",
    { default: preset },
    (value, at) => localeOf(textOf(value, at), at.field),
    () => preset
  )

/** A two-letter region, for phone numbers. */
export const region = (label: string): Field<string> =>
  make(
    label,
    "string",
    { default: "US", help: "Two letters of ISO 3166" },
    (value, at) => {
      const read = textOf(value, at).trim().toUpperCase()
      if (!regions.has(read)) throw invalid(at, value, "a country of two letters that has phone numbers")
      return read
    },
    () => "US"
  )

/** A pattern in RE2 syntax, whose search takes linear time. */
export const pattern = (label: string): Field<string> =>
  make(
    label,
    "pattern",
    { required: true, maximum: 512, help: "RE2: no look-around, no back-references" },
    (value, at) => {
      const read = textOf(value, at)
      if (!Characters.isUpTo(read, 512)) throw tooMuch("the pattern is too long", 512, Characters.count(read), at.field)
      return read
    },
    () => ""
  )

export const formula = (label: string): Field<string> =>
  make(
    label,
    "formula",
    { required: true, maximum: 4096 },
    // The pattern syntax has its own length limit.
    textOf,
    () => ""
  )

/** Makes a field an option, which is fixed in the step. */
export const option = <A>(field: Field<A>): Field<A> => ({ ...field, mappable: false })

/** Adds a check of literal texts before the step runs. */
export const judged = (field: Field<string>, judge: Field["judge"]): Field<string> => ({ ...field, judge })

/** Makes a field required. */
export const needed = <A>(field: Field<A>): Field<A> => ({ ...field, required: true })

/** Makes lists in a field line items. */
export const mapped = <A>(field: Field<A>): Field<A> => ({ ...field, lines: true })
