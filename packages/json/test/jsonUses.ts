import { parseAst } from "vitest/node"

/** A way of parsing JSON in a source. */
export interface JsonUse {
  /** The name of the parser that is used; `JSON` if the used member of `JSON` cannot be determined. */
  readonly name: string
  readonly line: number
}

/** Members of Effect, of requests and of answers that parse JSON, whatever they belong to. */
const parsing: ReadonlySet<string> = new Set([
  "fromJsonString",
  "UnknownFromJsonString",
  "fromJson",
  "schemaBodyJson",
  "schemaJson",
  "json"
])

/** What reads JSON of our own writing, without looking first what it costs. */
const ofOurOwn: ReadonlySet<string> = new Set(["readJson", "readJsonbBytes", "fromJsonText"])

interface Node {
  readonly type: string
  readonly start: number
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

const nameOf = (node: unknown): string | null =>
  isNode(node) && node.type === "Identifier" ? String(node["name"]) : null

/** One of the names, or a character of a name that is written as an escape. In other sources there is nothing to be found, so they are not parsed. */
const mayUse = new RegExp(`\\\\u|\\b(JSON|${[...parsing, ...ofOurOwn].join("|")})\\b`)

export const jsonUses = (source: string, file = "source.ts"): ReadonlyArray<JsonUse> => {
  if (!mayUse.test(source)) return []
  const found: Array<JsonUse> = []
  const visit = (node: Node, parent: Node | null): void => {
    // Types are not there when it runs.
    if (/^TS(?!AsExpression|NonNullExpression|SatisfiesExpression|InstantiationExpression)/.test(node.type)) return
    const add = (name: string): void => {
      found.push({ name, line: source.slice(0, node.start).split("\n").length })
    }
    if (node.type === "MemberExpression") {
      const { computed, object, property } = node
      const ofJson = nameOf(object) === "JSON" || (isNode(object) && nameOf(object["property"]) === "JSON")
      const member = computed === true ? null : nameOf(property)
      if (ofJson && member === "parse") return add("JSON.parse")
      if (ofJson && member === null) return add("JSON")
      if (ofJson) return
      if (member !== null && parsing.has(member)) add(member)
    } else if (ofOurOwn.has(nameOf(node) ?? "") && parent?.type !== "ImportSpecifier") {
      return add(nameOf(node)!)
    } else if (nameOf(node) === "JSON" && !(parent?.type === "MemberExpression" && parent["property"] === node)) {
      return add("JSON")
    }
    for (const value of Object.values(node)) {
      for (const inner of Array.isArray(value) ? value : [value]) if (isNode(inner)) visit(inner, node)
    }
  }
  visit(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }) as unknown as Node, null)
  return found
}
