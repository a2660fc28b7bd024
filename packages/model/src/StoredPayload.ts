import type { Schema, SchemaAST } from "effect"

/** Marks schemas of received data, so that the schema of an answer determines who may get it. */

const mark = "tidegate/storedPayload"

/** Annotation for a schema whose values contain parts of a stored payload. */
export const storedPayload = { [mark]: true } as const

const childrenOf = (ast: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> => {
  switch (ast._tag) {
    case "Objects":
      return [...ast.propertySignatures.map(({ type }) => type), ...ast.indexSignatures.map(({ type }) => type)]
    case "Arrays":
      return [...ast.elements, ...ast.rest]
    case "Union":
      return ast.types
    case "Declaration":
      return ast.typeParameters
    case "Suspend":
      return [ast.thunk()]
    default:
      return []
  }
}

/** Whether a value of the schema, or any part of it, may contain parts of a stored payload. */
export const holdsStoredPayload = ({ ast }: Schema.Top): boolean => {
  const seen = new Set<SchemaAST.AST>()
  const waiting: Array<SchemaAST.AST> = [ast]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue
    seen.add(next)
    if (next.annotations?.[mark] === true || next.checks?.some(({ annotations }) => annotations?.[mark] === true)) {
      return true
    }
    waiting.push(...childrenOf(next))
  }
  return false
}
