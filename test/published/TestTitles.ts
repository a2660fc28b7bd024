import { parseAst } from "vitest/node"

interface Node {
  readonly type: string
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string"

/** The functions that define a test: `it`, a suite's own function of that name, and the name that is used where both exist. */
const makers: ReadonlySet<unknown> = new Set(["it", "test", "plainIt"])
const groups: ReadonlySet<unknown> = new Set(["describe", "layer", "suite"])
/** A test that is not run, or is expected to fail, proves nothing. */
const idle: ReadonlySet<unknown> = new Set(["skip", "todo", "fails"])

interface Chain {
  readonly root: unknown
  readonly members: ReadonlyArray<unknown>
}

/** `it.effect.each(table)` is `it` with `effect` and `each`. */
const chainOf = (callee: unknown): Chain => {
  if (!isNode(callee)) return { root: null, members: [] }
  if (callee.type === "Identifier") return { root: callee["name"], members: [] }
  if (callee.type === "CallExpression") return chainOf(callee["callee"])
  if (callee.type !== "MemberExpression") return { root: null, members: [] }
  const { members, root } = chainOf(callee["object"])
  return { root, members: [...members, (callee["property"] as Node)["name"]] }
}

const titleOf = (source: string, argument: unknown): string | null => {
  if (!isNode(argument)) return null
  if (argument.type === "Literal" && typeof argument["value"] === "string") return argument["value"]
  // As written, with its placeholders.
  return argument.type === "TemplateLiteral"
    ? source.slice(Number(argument["start"]) + 1, Number(argument["end"]) - 1)
    : null
}

/** The titles of the tests in a source that are run, with their placeholders. */
export const titlesIn = (source: string): ReadonlySet<string> => {
  const titles = new Set<string>()
  const visit = (node: Node): void => {
    if (node.type === "CallExpression") {
      const { members, root } = chainOf(node["callee"])
      const isIdle = members.some((member) => idle.has(member))
      if (isIdle && (makers.has(root) || groups.has(root))) return
      const [title, body] = node["arguments"] as ReadonlyArray<unknown>
      // `it.each(table)` has only a table: it does not define a test yet.
      if (makers.has(root) && body !== undefined) {
        const text = titleOf(source, title)
        if (text !== null) titles.add(text)
      }
    }
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child)
  }
  visit(parseAst(source, { lang: "ts" }) as unknown as Node)
  return titles
}
