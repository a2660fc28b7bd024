/**
 * A second reading of the filter language, written from its description and sharing no code with the compiler: an
 * interpreter that walks condition and document together and is free to be slow. What the property test compares the
 * engine with. It knows no limits.
 */

/** A key that is not there. */
const missing = Symbol("missing")

type Found = { readonly value: unknown; readonly indexes: ReadonlyArray<number> }

interface Context {
  readonly root: unknown
  readonly subject: "document" | "record" | "headers" | "text"
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value)

const isScalar = (value: unknown): boolean =>
  value === null || typeof value === "string" || typeof value === "number" || typeof value === "boolean"

const keysOf = (value: Record<string, unknown>): Array<string> => Object.keys(value).toSorted()

/** Text of a JSON value in which the order of keys is settled: equal texts are deeply equal values. */
const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (isObject(value))
    return `{${keysOf(value)
      .map((key) => JSON.stringify(key) + ":" + canonical(value[key]))
      .join()}}`
  return JSON.stringify(value === 0 ? 0 : value)
}

/** A number for what counts as one, for mixed comparisons. */
const numeric = (value: unknown): number | undefined => {
  if (typeof value === "number") return value
  if (typeof value !== "string" || value.length > 64) return undefined
  return /^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/i.test(value) && !Number.isNaN(Number(value)) ? Number(value) : undefined
}

/** "1" and 1 are the same, and nothing else of two kinds is. */
const same = (a: unknown, b: unknown): boolean => {
  if (!isScalar(a) || !isScalar(b)) return isScalar(a) === isScalar(b) && canonical(a) === canonical(b)
  const kinds = [typeof a, typeof b].toSorted().join()
  return kinds === "number,string" ? numeric(a) !== undefined && numeric(a) === numeric(b) : a === b
}

/** Everything an operator looks at in a value: the value, and if it is an array all that is in it. */
const within = (found: Found): Array<Found> => [
  found,
  ...(Array.isArray(found.value)
    ? found.value.flatMap((value: unknown, i) => within({ value, indexes: [...found.indexes, i] }))
    : [])
]

const leaves = (found: Found): Array<Found> => within(found).filter(({ value }) => !Array.isArray(value))

const names: Record<string, string> = {
  ne: "neq",
  starts_with: "startsWith",
  ends_with: "endsWith",
  exists: "exist"
}
const known = new Set([
  "eq",
  "neq",
  "gt",
  "gte",
  "lt",
  "lte",
  "in",
  "nin",
  "startsWith",
  "endsWith",
  "contains",
  "regex",
  "exist"
])

const operatorNamed = (key: string): string | undefined => {
  const bare = key.replace(/^\$/, "")
  const name = Object.hasOwn(names, bare) ? names[bare]! : bare
  return known.has(name) ? name : undefined
}

const isReference = (operand: unknown): operand is { $ref: string } =>
  isObject(operand) && Object.keys(operand).join() === "$ref"

/** Which operands an operator takes: a bare name with another operand is a field. */
const fits = (name: string, operand: unknown): boolean => {
  if (isReference(operand)) return name !== "regex" && name !== "exist"
  const text = typeof operand === "string"
  const number = typeof operand === "number"
  switch (name) {
    case "eq":
    case "neq":
      return true
    case "exist":
      return typeof operand === "boolean"
    case "regex":
      return text
    case "in":
    case "nin":
      return text || number || (Array.isArray(operand) && operand.every(isScalar))
    case "startsWith":
    case "endsWith":
      return text || (Array.isArray(operand) && operand.every((one) => typeof one === "string"))
    default:
      return text || number
  }
}

const lookUp = (path: string, found: Found, context: Context): unknown => {
  const text = context.subject === "headers" ? path.toLowerCase() : path
  if (isObject(context.root) && Object.hasOwn(context.root, text)) return context.root[text]
  let indexes = [...found.indexes]
  let at: unknown = context.root
  const steps = text
    .replace(/^\$(?=[.[])/, "")
    .replaceAll("[", ".[")
    .split(".")
  for (const step of steps.filter((part) => part !== "")) {
    if (step.startsWith("[")) {
      const index = step === "[$index]" ? indexes.shift() : Number(step.slice(1, -1))
      at = Array.isArray(at) && index !== undefined ? at[index] : undefined
    } else if (Array.isArray(at)) {
      at = /^\d+$/.test(step) ? at[Number(step)] : undefined
    } else {
      at = isObject(at) && Object.hasOwn(at, step) ? at[step] : undefined
    }
  }
  return at
}

const compare = (a: unknown, b: unknown): number | undefined => {
  if (typeof a === "string" && typeof b === "string") return a < b ? -1 : a > b ? 1 : 0
  const [left, right] = [numeric(a), numeric(b)]
  return left === undefined || right === undefined ? undefined : Math.sign(left - right)
}

/** One operator on a value that is there. */
const operate = (name: string, operand: unknown, found: Found, context: Context): boolean => {
  const operandFor = (place: Found): unknown => (isReference(operand) ? lookUp(operand.$ref, place, context) : operand)
  const signOf = (place: Found): number | undefined => {
    const other = operandFor(place)
    return typeof other === "string" || typeof other === "number" ? compare(place.value, other) : undefined
  }
  const each = (list: unknown): Array<unknown> => (Array.isArray(list) ? list : [list])
  switch (name) {
    case "exist":
      return operand === true
    case "eq":
      return within(found).some((place) => operandFor(place) !== undefined && same(place.value, operandFor(place)))
    case "neq":
      return !operate("eq", operand, found, context)
    case "gt":
      return leaves(found).some((place) => signOf(place) === 1)
    case "gte":
      return leaves(found).some((place) => [0, 1].includes(signOf(place) ?? 9))
    case "lt":
      return leaves(found).some((place) => signOf(place) === -1)
    case "lte":
      return leaves(found).some((place) => [0, -1].includes(signOf(place) ?? 9))
    case "in":
      return leaves(found).some((place) => {
        const list = operandFor(place)
        if (Array.isArray(list))
          return isScalar(place.value) && list.some((one) => isScalar(one) && same(place.value, one))
        if (typeof list !== "string" && typeof list !== "number") return false
        return typeof place.value === "string" && place.value.includes(`${list}`)
      })
    case "nin":
      return !operate("in", operand, found, context)
    case "startsWith":
    case "endsWith":
      return leaves(found).some((place) => {
        const list = operandFor(place)
        if (isReference(operand) && typeof list !== "string") return false
        return each(list).some(
          (part) =>
            typeof part === "string" &&
            typeof place.value === "string" &&
            (name === "startsWith"
              ? place.value.indexOf(part) === 0
              : place.value.slice(-part.length || place.value.length) === part || part === "")
        )
      })
    case "contains": {
      if (Array.isArray(found.value)) {
        return leaves(found).some(
          (place) => isScalar(place.value) && isScalar(operandFor(place)) && same(place.value, operandFor(place))
        )
      }
      const part = operandFor(found)
      if (typeof part !== "string" && typeof part !== "number") return false
      return typeof found.value === "string" && found.value.indexOf(`${part}`) >= 0
    }
    case "regex":
      return leaves(found).some(
        (place) => typeof place.value === "string" && new RegExp(String(operand), "u").test(place.value)
      )
    default:
      throw new Error(`no such operator: ${name}`)
  }
}

/** The places a dotted key leads to; in an array, one for each element. */
const follow = (steps: ReadonlyArray<string>, found: Found): Array<Found> => {
  const [step, ...rest] = steps
  if (step === undefined || found.value === missing) return [found]
  if (Array.isArray(found.value)) {
    if (/^(0|[1-9][0-9]*)$/.test(step)) {
      const value = Number(step) in found.value ? found.value[Number(step)] : missing
      return follow(rest, { ...found, value })
    }
    return found.value.flatMap((value: unknown, i) => follow(steps, { value, indexes: [...found.indexes, i] }))
  }
  const own = isObject(found.value) && Object.hasOwn(found.value, step)
  return follow(rest, { ...found, value: own ? found.value[step] : missing })
}

type Level = Context["subject"] | "nested"

/** The object conditions' keys that are field names whatever the value is. */
const isField = (key: string, operand: unknown, level: Level): boolean => {
  if (key.startsWith("$") || level === "text") return false
  const name = operatorNamed(key)
  return name === undefined || level === "headers" || level === "record" || !fits(name, operand)
}

const holdsKey = (key: string, operand: unknown, level: Level, found: Found, context: Context): boolean => {
  const asField = (): boolean => {
    if (!isObject(found.value)) return false
    const name = level === "headers" ? key.toLowerCase() : key
    const value = found.value
    const places =
      Object.hasOwn(value, name) || !/^[^.]+(\.[^.]+)+$/.test(name)
        ? [{ ...found, value: Object.hasOwn(value, name) ? value[name] : missing }]
        : follow(name.split("."), found)
    return places.some((place) => holds(operand, "nested", place, context))
  }
  switch (key) {
    case "$or":
      return (operand as Array<unknown>).some((one) => holds(one, level, found, context))
    case "$and": {
      const list = operand as Array<unknown>
      return (found.value !== missing || list.length > 0) && list.every((one) => holds(one, level, found, context))
    }
    case "$not":
      return found.value !== missing && !holds(operand, level, found, context)
    case "$ref":
      return found.value !== missing && operate("eq", { $ref: operand }, found, context)
  }
  if (isField(key, operand, level)) return asField()
  const name = operatorNamed(key)!
  if (found.value === missing) return name === "exist" && operand === false
  const named = !key.startsWith("$") && level !== "text" && isObject(found.value)
  if (named && (level === "document" || Object.hasOwn(found.value, key))) return asField()
  return operate(name, operand, found, context)
}

const holds = (condition: unknown, level: Level, found: Found, context: Context): boolean => {
  if (isScalar(condition)) return found.value !== missing && operate("eq", condition, found, context)
  if (Array.isArray(condition)) {
    const { value, indexes } = found
    return (
      Array.isArray(value) &&
      condition.every((item) =>
        value.some((one: unknown, i) => holds(item, "nested", { value: one, indexes: [...indexes, i] }, context))
      )
    )
  }
  if (!isObject(condition)) throw new Error("not JSON")
  const keys = Object.keys(condition)
  if (keys.length === 0) return found.value !== missing
  const every = (place: Found): boolean => keys.every((key) => holdsKey(key, condition[key], level, place, context))
  return keys.some((key) => isField(key, condition[key], level))
    ? leaves(found).some((place) => isObject(place.value) && every(place))
    : every(found)
}

/** Whether `document` meets `condition`. */
export const meets = (condition: unknown, document: unknown, subject: Context["subject"]): boolean =>
  holds(condition, subject, { value: document, indexes: [] }, { root: document, subject })
