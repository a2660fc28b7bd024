/** Filters as they are written in one field: `status:failed`. */

/** A value of the URL, and what the reader sees of it. */
export type Value = readonly [value: string, words: string]

/** A filter with the values that it can have. */
export interface Known {
  /** Its name in the URL. */
  readonly name: string
  /** Its name in the field. */
  readonly key: string
  readonly label: string
  /** Null: any text. */
  readonly values: ReadonlyArray<Value> | null
  /** Its values are resources, of which only some are known by name: any id is a value as well. */
  readonly hasIds: boolean
  /** It takes a text that is written without a name. */
  readonly isUsual: boolean
}

/** A suggestion of the field: it completes a name in the field, or sets a filter. */
export type Completion =
  | { readonly does: "write"; readonly text: string; readonly label: string }
  | { readonly does: "set"; readonly name: string; readonly value: string; readonly label: string }

const maxShown = 12
/** A longer text is refused by the gateway. */
export const longestText = 200

const isId = (text: string): boolean => /^[a-z]+_\w{1,80}$/.test(text)

const setting = ({ label, name }: Known, [value, words]: Value): Completion => ({
  does: "set",
  name,
  value,
  label: `${label}: ${words}`
})

const isExactly = ([value, words]: Value, text: string): boolean =>
  value.toLowerCase() === text || words.toLowerCase() === text

const has = ([value, words]: Value, text: string): boolean =>
  value.toLowerCase().includes(text) || words.toLowerCase().includes(text)

/** The values of a filter that a text may mean, the exact one first. */
const valuesFor = (filter: Known, text: string): ReadonlyArray<Completion> => {
  if (filter.values === null) return text === "" ? [] : [setting(filter, [text, text])]
  const wanted = text.toLowerCase()
  const found = filter.values
    .filter((value) => has(value, wanted))
    .toSorted((a, b) => Number(isExactly(b, wanted)) - Number(isExactly(a, wanted)))
  const isOther = filter.hasIds && isId(text) && found.length === 0
  return [...found, ...(isOther ? [[text, text] as const] : [])].map((value) => setting(filter, value))
}

/**
 * The suggestions for a text in the field, the likeliest first. If the text names a filter: its values. Otherwise: a value that equals the text,
 * filters whose names begin with it, a search for it, and values that contain it.
 */
export const completionsOf = (written: string, filters: ReadonlyArray<Known>): ReadonlyArray<Completion> => {
  const text = written.trim()
  const lower = text.toLowerCase()
  const names = (of: ReadonlyArray<Known>): ReadonlyArray<Completion> =>
    of.map(({ key, label }) => ({ does: "write", text: `${key}:`, label: `${label} (${key}:)` }))
  if (text === "") return names(filters)
  const [name = ""] = lower.split(":", 1)
  const named = lower.includes(":") ? filters.find(({ key }) => key === name.trim()) : undefined
  if (named !== undefined) return valuesFor(named, text.slice(name.length + 1).trim()).slice(0, maxShown)
  const closed = filters.filter(({ values }) => values !== null)
  const of = (matches: (value: Value) => boolean): ReadonlyArray<Completion> =>
    closed.flatMap((filter) => filter.values!.filter(matches).map((value) => setting(filter, value)))
  return [
    ...of((value) => isExactly(value, lower)),
    ...names(filters.filter(({ key, label }) => key.startsWith(lower) || label.toLowerCase().startsWith(lower))),
    ...filters.filter(({ isUsual }) => isUsual).map((filter) => setting(filter, [text, text])),
    ...of((value) => has(value, lower) && !isExactly(value, lower))
  ].slice(0, maxShown)
}
