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
import { type ExactNumber, isExactNumber, isJsonObject, readNumber } from "@tidegate/json/ExactNumber"
import { writeJson } from "@tidegate/json/NumberMarks"
import { CliFailure, usage } from "../Failure.ts"
import { escaped } from "../Output.ts"

/** A file that is imported is somebody else's until it is understood: it is bounded before anything is made of it. */
export const largestFile = 8 * 1024 * 1024
const maxNodes = 250_000
const deepest = 64

export type Json =
  | string
  | number
  | ExactNumber
  | boolean
  | null
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json }
export type JsonObject = { readonly [name: string]: Json }
export type Path = ReadonlyArray<string | number>

export const isObject = (value: unknown): value is JsonObject => isJsonObject(value)

/** A decimal number of YAML as JSON writes it, which has no `+`, no zeros before it, and digits around the point. */
const asInJson = (written: string): string =>
  written
    .replace(/^\+/, "")
    .replace(/^(-?)0+(?=\d)/, "$1")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "")

/** Numbers keep their digits, where JavaScript's own would not, as they do everywhere else. */
const decimal: ScalarTag = {
  identify: isExactNumber,
  default: true,
  tag: "tag:yaml.org,2002:float",
  test: /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/,
  resolve: (written) => readNumber(asInJson(written)),
  stringify: ({ value }) => String(value)
}

const numbers: ParseOptions & SchemaOptions = { schema: "core", customTags: (tags) => [decimal, ...tags] }

/** A value in a message. */
export const textOf = (value: Json | undefined): string =>
  typeof value === "string" ? value : (writeJson(value) ?? "")

/** What a file says, and where. */
export interface Parsed {
  readonly value: Json
  /** Of the value at a path, or of the nearest thing around it that is in the file. */
  readonly lineOf: (path: Path) => number
}

/**
 * Why a text is not parsed; null when it may be. The parser takes a hundred times the memory of what it reads, and goes down level by
 * level: so what can become a value is counted first, and what opens one. What stands in texts is counted, too: there is room for it.
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
        // They mark a value where space follows.
        if (/\s/.test(text[at + 1] ?? " ")) marks++
        break
      default:
    }
  }
  return marks > maxNodes ? `has more than ${maxNodes} values and lines` : null
}

/** Fails with the line of the first thing that is wrong. */
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
  // Their own look for repeated keys compares each with each: ours is below.
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
    // A few of them can stand for more than there is memory, and nothing here is said twice.
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

/** Safe to be shown: what a terminal would obey stands as an escape, in quotes. */
export const printYaml = (value: JsonObject): string => {
  const document = new Document(value, { aliasDuplicateObjects: false, ...numbers })
  visit(document, {
    Scalar: (_, scalar) => {
      if (typeof scalar.value === "string" && escaped(scalar.value) !== scalar.value) scalar.type = "QUOTE_DOUBLE"
    }
  })
  // All that is left of it stands in such quotes.
  return escaped(document.toString({ lineWidth: 0 }))
}
