import type { Schema } from "effect"

/** A segment of a path: a member, an element (`-1` is the last), or all elements; the rest of the path applies to each of them. */
export type Segment =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "each" }

/** The content between `{{` and `}}`: a path, and the value that is used if the path finds nothing or null. */
export interface Token {
  readonly root: string
  readonly rest: ReadonlyArray<Segment>
  /** Undefined if no fallback was written. */
  readonly fallback: Schema.Json | undefined
}

/** Maximum length of a token, in characters. */
export const maxTokenLength = 1_024

/** Maximum number of path segments: more than the nesting levels of any body that may be written here. */
const maxSegments = 64

const space = /\s*/y
const rootName = /[A-Za-z_]\w*/y
const dotted = /\.([^\s.[\]{}()|?"']+)/y
const indexed = /\[\s*(-?\d{1,9})\s*\]/y
const all = /\[\s*\]/y
const quoted = /\[\s*("(?:[^"\\]|\\.)*")\s*\]/y
const literal = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

/** Reads the token whose content begins at `from`, right after its `{{`. Returns the token and the index after its `}}`, or an error. */
export const readToken = (text: string, from: number): { readonly token: Token; readonly end: number } | string => {
  const scanner = new Scanner(text.slice(from, from + maxTokenLength))
  scanner.take(space)
  const root = scanner.take(rootName)?.[0]
  if (root === undefined) return "a token holds a path like trigger.body.order.id"
  const rest: Array<Segment> = []
  for (;;) {
    const segment = segmentAt(scanner)
    if (typeof segment === "string") return segment
    if (segment === null) break
    if (rest.length === maxSegments) return `a path has at most ${maxSegments} steps`
    rest.push(segment)
  }
  scanner.take(space)
  let fallback: Schema.Json | undefined
  if (scanner.takeText("??")) {
    scanner.take(space)
    const written = scanner.take(literal)?.[0]
    fallback = written === undefined ? undefined : valueOf(written)
    if (fallback === undefined) return "?? is followed by a text in double quotes, a number, true, false or null"
    scanner.take(space)
  }
  if (!scanner.takeText("}}")) {
    return scanner.atEnd
      ? `the token is not closed, or is longer than ${maxTokenLength} characters`
      : "the token holds more than a path and a ?? value"
  }
  return { token: { root, rest, fallback }, end: from + scanner.at }
}

const segmentAt = (scanner: Scanner): Segment | string | null => {
  const name = scanner.take(dotted)?.[1]
  if (name !== undefined) return { kind: "key", key: name }
  const index = scanner.take(indexed)?.[1]
  if (index !== undefined) return { kind: "index", index: Number(index) }
  if (scanner.take(all) !== null) return { kind: "each" }
  const key = scanner.take(quoted)?.[1]
  if (key === undefined) return null
  const value = valueOf(key)
  return typeof value === "string" ? { kind: "key", key: value } : "a key in brackets is a text in double quotes"
}

/** The value of a JSON literal of this language; undefined if it contains an escape that JSON does not have. */
const valueOf = (written: string): Schema.Json | undefined => {
  if (written === "null") return null
  if (written === "true" || written === "false") return written === "true"
  if (!written.startsWith('"')) return Number(written)
  const text = /^"([^"\\]*)"$/.exec(written)?.[1]
  return text ?? unescaped(written.slice(1, -1))
}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t"
}

const unescaped = (text: string): string | undefined => {
  let valid = true
  const value = text.replaceAll(/\\u([\da-fA-F]{4})|\\(.)/gs, (_, unit: string | undefined, char: string) => {
    if (unit !== undefined) return String.fromCharCode(Number.parseInt(unit, 16))
    valid &&= Object.hasOwn(escapes, char)
    return escapes[char] ?? ""
  })
  return valid ? value : undefined
}

class Scanner {
  readonly text: string
  at = 0

  constructor(text: string) {
    this.text = text
  }

  get atEnd(): boolean {
    return this.at >= this.text.length
  }

  /** Matches a sticky `pattern` at the scanner's position, and moves the position after the match. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)
    if (found !== null) this.at += found[0].length
    return found
  }

  takeText(text: string): boolean {
    const found = this.text.startsWith(text, this.at)
    if (found) this.at += text.length
    return found
  }
}
