import { maxPathLength, parsePath, type PathSegment, positionOf } from "@tidegate/json/JsonPath"
import { LargeJson, tooLarge } from "@tidegate/json/LargeJson"
import { Predicate, Result } from "effect"
import type { Escape } from "./Escape.ts"

/**
 * Texts with placeholders like `{{ body.order.id }}`. A placeholder is a path into the request: there are no
 * expressions or helpers, so the cost of rendering is proportional to the output, and rendering can neither loop nor fail. Two opening
 * braces cannot be escaped; in a JSON string they can be written as a Unicode escape.
 *
 * Only own properties are read. A missing value or null renders as empty text; an object or a list as its JSON.
 */

/** The members below a root: none, any, names that ignore case, or only these names. */
export type TemplateMembers = "none" | "any" | "headers" | ReadonlyArray<string>

/** The roots of paths. A root may also stand alone, unless its members are listed. */
export type TemplateRoots<Root extends string> = Readonly<Record<Root, TemplateMembers>>

/** Why a text is no valid template; `at` is the index of the placeholder in the text. */
export interface TemplateInvalid {
  readonly message: string
  readonly at: number
}

/** Maximum length of a rendered text, in characters. */
export const maxRenderedLength = 262_144

export interface Template<Root extends string> {
  /**
   * Renders the text; `read` is called for the roots that it names. Returns null if the text would be longer than `maxRenderedLength`, because
   * cutting it would break a JSON or XML document, or if a value is nested too deeply.
   */
  readonly render: (read: (root: Root) => unknown, escape: Escape) => string | null
  /** Replaces every placeholder by `value`, or by `text` within a JSON string. */
  readonly fill: (value: string, text: string) => string
}

interface Placeholder<Root extends string> {
  readonly root: Root
  readonly rest: ReadonlyArray<PathSegment>
  /** Whether the placeholder is within a string, if the text is read as JSON. */
  readonly inString: boolean
  /** The plain text after the placeholder. */
  readonly after: string
}

/** Compiles a text once; a text without placeholders is a template, too. */
export const compileTemplate = <Root extends string>(
  text: string,
  roots: TemplateRoots<Root>
): Result.Result<Template<Root>, TemplateInvalid> => {
  const placeholders: Array<Placeholder<Root>> = []
  let open = text.indexOf("{{")
  const before = open < 0 ? text : text.slice(0, open)
  let inString = endsInString(before, false)
  while (open >= 0) {
    const close = text.indexOf("}}", open + 2)
    if (close < 0) return invalid(open, "the placeholder is not closed")
    const path = parsePlaceholder(text.slice(open + 2, close).trim(), roots)
    if (typeof path === "string") return invalid(open, path)
    const next = text.indexOf("{{", close + 2)
    const after = text.slice(close + 2, next < 0 ? text.length : next)
    placeholders.push({ ...path, inString, after })
    inString = endsInString(after, inString)
    open = next
  }
  return Result.succeed({
    render: (read, escape) => render(before, placeholders, read, escape),
    fill: (value, text) =>
      placeholders.reduce((filled, { after, inString }) => filled + (inString ? text : value) + after, before)
  })
}

const invalid = (at: number, message: string): Result.Result<never, TemplateInvalid> => Result.fail({ at, message })

/** Whether a piece of JSON text ends within a string; `begins`: whether it begins within one. */
const endsInString = (piece: string, begins: boolean): boolean => {
  let inString = begins
  for (let i = 0; i < piece.length; i++) {
    const char = piece[i]
    if (char === '"') inString = !inString
    else if (char === "\\" && inString) i++
  }
  return inString
}

/** The path between the braces, or an error. */
const parsePlaceholder = <Root extends string>(
  text: string,
  roots: TemplateRoots<Root>
): Pick<Placeholder<Root>, "root" | "rest"> | string => {
  if (text === "") return "the placeholder is empty"
  if (text.length > maxPathLength) return `the placeholder is longer than ${maxPathLength} characters`
  const [first, ...rest] = parsePath(text) ?? []
  if (first?.kind !== "key")
    return `the placeholder is not a path like ${Object.keys(roots)[0]}.order.id or ${Object.keys(roots)[0]}.items[0].sku`
  if (!Object.hasOwn(roots, first.key)) return `a placeholder begins with one of ${Object.keys(roots).join(", ")}`
  const root = first.key as Root
  if (rest.some(({ kind }) => kind === "each" || kind === "element")) return "a placeholder names one place"
  const members: TemplateMembers = roots[root]
  const [member, ...below] = rest
  if (members === "none" && member !== undefined) return `${root} is a text and has no fields`
  if (members === "headers" && member?.kind === "key") {
    return { root, rest: [{ kind: "key", key: member.key.toLowerCase() }, ...below] }
  }
  if (typeof members !== "string" && (below.length > 0 || member?.kind !== "key" || !members.includes(member.key))) {
    return `only ${members.map((name) => `${root}.${name}`).join(", ")} can be used`
  }
  return { root, rest }
}

const render = <Root extends string>(
  before: string,
  placeholders: ReadonlyArray<Placeholder<Root>>,
  read: (root: Root) => unknown,
  escape: Escape
): string | null => {
  let rendered = before
  for (const { after, inString, rest, root } of placeholders) {
    const value = valueAt(read(root), rest)
    if (value === tooLarge) return null
    const asValue = escape.values && !inString
    const text = asValue ? jsonOf(value ?? null) : textOf(value)
    // Checked before escaping, because copying megabytes that are then refused is wasteful.
    if (text === null || rendered.length + text.length > maxRenderedLength) return null
    rendered += (asValue ? text : escape.text(text)) + after
    if (rendered.length > maxRenderedLength) return null
  }
  return rendered
}

const textOf = (value: unknown): string | null => {
  if (typeof value === "string") return value
  return value === undefined || value === null ? "" : jsonOf(value)
}

/** Null if the value is too deep for the stack; the parser that read it does not use recursion. */
const jsonOf = (value: unknown): string | null => {
  try {
    return JSON.stringify(value)
  } catch {
    return null
  }
}

/** The value at a path; in a large text it may be the marker for "too large". */
export const valueAt = (root: unknown, from: ReadonlyArray<PathSegment>): unknown => {
  const [reached, path] = root instanceof LargeJson ? root.reach(from) : [root, from]
  let value: unknown = reached
  for (const segment of path) {
    if (Array.isArray(value)) {
      value = value[segment.kind === "index" ? segment.index : segment.kind === "key" ? positionOf(segment.key) : -1]
    } else if (segment.kind === "key" && Predicate.isReadonlyObject(value) && Object.hasOwn(value, segment.key)) {
      value = value[segment.key]
    } else {
      return undefined
    }
  }
  return value
}
