import {
  Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  LineCounter,
  parseDocument,
  type ParseOptions,
  type ScalarTag,
  type SchemaOptions,
  visit
} from "yaml"
import { isExactNumber, readNumber } from "@tidegate/json/ExactNumber"
import { CliFailure, usage } from "../Failure.ts"
import { escaped } from "../Output.ts"
import type { Json, JsonObject, Path } from "./Json.ts"

/** Limits that are checked before an imported file is parsed, because it may come from somebody else. */
export const largestFile = 8 * 1024 * 1024
const maxNodes = 250_000
const deepest = 64

/** Converts a decimal number of YAML to JSON's syntax, which has no `+`, no leading zeros, and digits on both sides of the point. */
const asInJson = (written: string): string =>
  written
    .replace(/^\+/, "")
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "")

/** Numbers that JavaScript would round keep all their digits, as they do everywhere else. */
const decimal: ScalarTag = {
  identify: isExactNumber,
  default: true,
  tag: "tag:yaml.org,2002:float",
  test: /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/,
  resolve: (written) => readNumber(asInJson(written)),
  stringify: ({ value }) => String(value)
}

const numbers: ParseOptions & SchemaOptions = { schema: "core", customTags: (tags) => [decimal, ...tags] }

/** The content of a file, with the lines of its values. */
export interface Parsed {
  readonly value: Json
  /** The line of the value at a path, or of the nearest enclosing value in the file. */
  readonly lineOf: (path: Path) => number
}

/**
 * Why a text must not be parsed; null if it may be. The parser uses a hundred times the memory of the text, and recursion for nesting. So
 * characters that may begin or open a value are counted first. Those inside texts count, too; the limit leaves room for them.
 */
const tooCostly = (text: string): string | null => {
  let marks = 0
  let open = 0
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "[":
      case "{":
        if (++open > 1_000) return "is nested too deeply"
        marks++
        break
      case "]":
      case "}":
        if (open > 0) open--
        break
      case "\n":
      case "\r":
      case ",":
      case '"':
      case "'":
      case "&":
      case "*":
      case "!":
        marks++
        break
      case "-":
      case "?":
      case ":":
        // They begin a value only before white space.
        if (/\s/.test(text[at + 1] ?? " ")) marks++
        break
      default:
    }
  }
  return marks > maxNodes ? `has more than ${maxNodes} values and lines` : null
}

/** Fails at the first error, with its line. */
export const parseYaml = (bytes: Uint8Array, name: string): Parsed => {
  const lines = new LineCounter()
  const at = (offset: number | undefined, message: string): CliFailure =>
    usage(`${name}:${lines.linePos(offset ?? 0).line}: ${message}`)
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw usage(`${name} is not UTF-8 text`)
  }
  const costly = tooCostly(text)
  if (costly !== null) throw usage(`${name} ${costly}`)
  // The library's own search for repeated keys is quadratic; ours is below.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, prettyErrors: false, ...numbers })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault !== undefined) {
    const message = fault.message.split("\n", 1)[0]!
    throw at(fault.pos[0], message.includes("call stack") ? "is nested too deeply" : message)
  }

  visit(document, (key, node, path) => {
    if (!isNode(node)) return
    const offset = node.range?.[0]
    if (path.length > deepest * 2) throw at(offset, `is nested more than ${deepest} levels deep`)
    // A few aliases can expand to more than the memory holds, and a file does not need them.
    if (isAlias(node) || ("anchor" in node && node.anchor !== undefined)) {
      throw at(offset, "anchors and aliases (& and *) are not taken: write it out")
    }
    if (key === "key" && !(isScalar(node) && typeof node.value === "string")) throw at(offset, "a name must be a text")
    if (isScalar(node) && typeof node.value === "number" && !Number.isFinite(node.value))
      throw at(offset, "is no number")
    if (!isMap(node)) return
    const names = new Set<unknown>()
    for (const { key } of node.items) {
      const name = isScalar(key) ? key.value : key
      if (names.has(name)) throw at(isNode(key) ? key.range?.[0] : offset, `${String(name)} is there twice`)
      names.add(name)
    }
  })
  return {
    value: document.toJS() as Json,
    lineOf: (path) => {
      for (let length = path.length; length > 0; length--) {
        const node = document.getIn(path.slice(0, length), true)
        if (isNode(node) && node.range) return lines.linePos(node.range[0]).line
      }
      return 1
    }
  }
}

/** YAML that is safe to show: control characters are written as escapes, in quotes. */
export const printYaml = (value: JsonObject): string => {
  const document = new Document(value, { aliasDuplicateObjects: false, ...numbers })
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === "string" && escaped(scalar.value) !== scalar.value) scalar.type = "QUOTE_DOUBLE"
    }
  })
  // The remaining ones are all in such quotes.
  return escaped(document.toString({ lineWidth: 0 }))
}
