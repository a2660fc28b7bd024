import { readToken } from "@tidegate/interpolation/MappingToken"
import * as Characters from "@tidegate/model/Characters"
import { Fault } from "../engine/Fault.ts"

export const formulaLimits = {
  characters: 4096,
  tokens: 500,
  depth: 32,
  arguments: 100,
  steps: 10_000,
  text: 131_072
} as const

export interface Token {
  readonly kind: "number" | "text" | "name" | "operator" | "end"
  /** For a text, its content without quotes; for a template, the template with its braces. */
  readonly text: string
  readonly position: number
}

export const syntax = (message: string, position: number): Fault =>
  new Fault("FORMATTER_FORMULA_SYNTAX", message, { field: "formula", position })

/** The formula exceeds a limit of the language. */
export const beyond = (what: string, limit: number, actual: number): Fault =>
  new Fault("FORMATTER_FORMULA_LIMIT", `the formula ${what}: at most ${limit}, not ${actual}`, {
    field: "formula",
    limit,
    actual
  })

const token =
  /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d{1,3})?|\.\d+(?:[eE][+-]?\d{1,3})?)|"((?:[^"]|"")*)"|([\p{L}_][\p{L}\p{N}_.]*)|(<=|>=|<>|[-+*/^%&=<>(),;]))/uy

/** The template at a position, after white space. It counts as a name, whatever its quotes contain. */
const templateAt = (formula: string, at: number): Token | null => {
  const space = /\s*/y
  space.lastIndex = at
  const position = at + (space.exec(formula)?.[0].length ?? 0)
  if (!formula.startsWith("{{", position)) return null
  const found = readToken(formula, position + 2)
  if (typeof found === "string") throw new Fault("FORMATTER_TEMPLATE_INVALID", found, { field: "formula", position })
  return { kind: "name", text: formula.slice(position, found.end), position }
}

/** The content of a quoted text. A template in it is refused, because it would not be resolved, which nobody intends. */
const literalOf = (quoted: string, position: number): string => {
  const text = quoted.replaceAll('""', '"')
  for (let open = text.indexOf("{{"); open >= 0; open = text.indexOf("{{", open + 2)) {
    if (typeof readToken(text, open + 2) !== "string")
      throw syntax("a template stands outside of quotes, and is joined to a text by &", position)
  }
  return text
}

/** The templates of a formula, each once. Empty for a formula that is too long, which is refused when it is compiled. */
export const templatesOf = (formula: string): ReadonlyArray<string> =>
  !Characters.isUpTo(formula, formulaLimits.characters)
    ? []
    : [
        ...new Set(
          tokensOf(formula).flatMap(({ kind, text }) => (kind === "name" && text.startsWith("{{") ? [text] : []))
        )
      ]

/** The tokens of a formula, followed by an end token. */
export const tokensOf = (formula: string): ReadonlyArray<Token> => {
  const text = formula.trimEnd()
  const tokens: Array<Token> = []
  let at = /^\s*=?/.exec(text)![0].length
  while (at < text.length) {
    const template = templateAt(text, at)
    if (template !== null) {
      tokens.push(template)
      at = template.position + template.text.length
      continue
    }
    token.lastIndex = at
    const found = token.exec(text)
    if (found === null) {
      const space = /\s*/y
      space.lastIndex = at
      const position = at + (space.exec(text)?.[0].length ?? 0)
      throw syntax(
        text[position] === '"' ? "a quote is not closed" : `${JSON.stringify(text[position])} means nothing here`,
        position
      )
    }
    const [whole, number, quoted, name, operator] = found
    const inner = number ?? name ?? operator ?? ""
    const position = at + whole.length - (quoted === undefined ? inner.length : whole.trimStart().length)
    if (number !== undefined) tokens.push({ kind: "number", text: number, position })
    else if (quoted !== undefined) tokens.push({ kind: "text", text: literalOf(quoted, position), position })
    else if (name !== undefined) tokens.push({ kind: "name", text: name, position })
    else tokens.push({ kind: "operator", text: operator!, position })
    if (tokens.length > formulaLimits.tokens) throw beyond("has too many tokens", formulaLimits.tokens, tokens.length)
    at += whole.length
  }
  return [...tokens, { kind: "end", text: "", position: text.length }]
}
