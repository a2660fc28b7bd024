import { maxPathLength, parsePath, type PathSegment, positionOf } from "@tidegate/json/JsonPath"
import { LargeJson, tooLarge } from "@tidegate/json/LargeJson"
import { Predicate, Result } from "effect"
import type { Escape } from "./Escape.ts"

/**
 * Texts with placeholders like `{{ body.order.id }}`. A placeholder is a path into the request and nothing else: no
 * expressions, no helpers, so rendering costs what it writes and can neither loop nor fail. There is no escape for two
 * opening braces; in a JSON string they can be written as a Unicode escape.
 *
 * Only own properties are read. What is not there, or null, renders as nothing; an object or a list as its JSON.
 */

/** What there is under a root: nothing, anything, members whose names ignore case, or these members and no others. */
export type TemplateMembers = "none" | "any" | "headers" | ReadonlyArray<string>

/** What a path can begin with. All but a root with members of its own can also stand alone. */
export type TemplateRoots<Root extends string> = Readonly<Record<Root, TemplateMembers>>

/** Why a text is no template; `at` is the place of the placeholder, in characters from the beginning. */
export interface TemplateInvalid {
  readonly message: string
  readonly at: number
}

/** The longest text a template renders to, in characters. */
export const maxRenderedLength = 262_144

export interface Template<Root extends string> {
  /**
   * The text, with `read` asked for the roots that it names. Null when it would be longer than `maxRenderedLength`,
   * because cutting it would make a JSON or XML document invalid, or would have to hold a value nested too deep.
   */
  readonly render: (read: (root: Root) => unknown, escape: Escape) => string | null
  /** The text with `value` in place of every placeholder; `text` where it stands in a JSON string. */
  readonly fill: (value: string, text: string) => string
}

interface Placeholder<Root extends string> {
  readonly root: Root
  readonly rest: ReadonlyArray<PathSegment>
  /** Whether it stands within a string, when the text is read as JSON. */
  readonly inString: boolean
  /** The plain text after it. */
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

/** Whether the end of a piece of JSON text is within a string, given whether its beginning is. */
const endsInString = (piece: string, begins: boolean): boolean => {
  let inString = begins
  for (let i = 0; i < piece.length; i++) {
    const char = piece[i]
    if (char === '"') inString = !inString
    else if (char === "\\" && inString) i++
  }
  return inString
}

/** The path between the braces, or what is wrong with it. */
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
    // Before it is escaped: a body of megabytes is not worth copying to find out that it is too long.
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

/** Null for what is nested deeper than the stack: a parser that does not recurse has read it. */
const jsonOf = (value: unknown): string | null => {
  try {
    return JSON.stringify(value)
  } catch {
    return null
  }
}

/** What is at a path; of a large text, it may be too large. */
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
