import { isJsonObject } from "@tidegate/json/ExactNumber"
import { didYouMean } from "@tidegate/model/NearestName"
import { Fault, previewOf, tooMuch } from "./Fault.ts"
import type { Reading } from "./Field.ts"
import { limits } from "./Limits.ts"
import type { Step } from "./Step.ts"

/** The inputs of a step for each element of its lists. */
interface Lines {
  /** Number of elements; null: there is no list, and the operation runs once. */
  readonly count: number | null
  readonly valueAt: (name: string, element: number) => unknown
}

const refused = (field: string, message: string): Fault =>
  new Fault("FORMATTER_LINE_ITEMS_NOT_SUPPORTED", message, { field })

/** The elements of a list of line items; lists within the list are refused. */
const elementsOf = (field: string, value: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  if (value.length > limits.line_items)
    throw tooMuch(`${field} has too many elements`, limits.line_items, value.length, field)
  if (value.some(Array.isArray)) throw refused(field, `${field}: a list within a list is not taken`)
  return value
}

/** Finds the lists among the inputs. Several lists are combined element by element up to the longest, and other values are repeated. */
export const linesOf = (
  { inputs: fields, lines }: Pick<Step, "inputs" | "lines">,
  inputs: Readonly<Record<string, unknown>>,
  warn: Reading["warn"]
): Lines => {
  const known = fields.map(([name]) => name)
  for (const name of Object.keys(inputs)) {
    if (!known.includes(name)) {
      const field = name.slice(0, 64)
      throw new Fault("FORMATTER_INPUT_INVALID", `${field}: there is no such input${didYouMean(name, known)}`, {
        field,
        value_preview: previewOf(inputs[name])
      })
    }
  }
  const given = (name: string): unknown => (Object.hasOwn(inputs, name) ? inputs[name] : undefined)
  const columns = new Map<string, ReadonlyArray<unknown>>()
  /** Lists within an input of keys and values, by key. */
  const inner = new Map<string, ReadonlyMap<string, ReadonlyArray<unknown>>>()
  for (const [name, field] of fields) {
    const value = given(name)
    if (lines === "map" && field.lines && Array.isArray(value) && field.type !== "key_value") {
      columns.set(name, elementsOf(name, value))
    } else if (lines === "map" && field.lines && field.type === "key_value" && isJsonObject(value)) {
      const lists = Object.entries(value).filter(([, one]) => Array.isArray(one)) as ReadonlyArray<
        [string, ReadonlyArray<unknown>]
      >
      if (lists.length > 0)
        inner.set(name, new Map(lists.map(([key, one]) => [key, elementsOf(`${name}.${key.slice(0, 64)}`, one)])))
    } else if (Array.isArray(value) && lines === "reject" && field.type !== "key_value") {
      throw refused(name, `${name}: this operation takes no list`)
    }
  }
  if (columns.size === 0 && inner.size === 0) return { count: null, valueAt: given }
  const lists = [...columns.values()]
  for (const named of inner.values()) lists.push(...named.values())
  const lengths = lists.map(({ length }) => length)
  const count = Math.max(...lengths)
  if (lengths.some((length) => length !== count)) {
    warn("LINE_ITEM_LENGTH_MISMATCH", "the lists are not of one length; what is missing is empty")
  }
  return {
    count,
    valueAt: (name, element) => {
      const column = columns.get(name)
      if (column !== undefined) return column[element] ?? null
      const lists = inner.get(name)
      if (lists === undefined) return given(name)
      return Object.fromEntries(
        Object.entries(given(name) as Readonly<Record<string, unknown>>).map(([key, value]) => [
          key,
          lists.has(key) ? (lists.get(key)![element] ?? null) : value
        ])
      )
    }
  }
}
