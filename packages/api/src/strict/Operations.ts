import { anyParametersMark, readBackMark } from "../contract/Operation.ts"
import { publishedDocument } from "../PublishedDocument.ts"
import { isObject, type JsonSchema, membersOf, type Shape, Shapes } from "./Shape.ts"

/** The inputs of each operation, taken from the published document: an operation is strict when it is published. */

export interface KnownOperation {
  /** Its name in the document. */
  readonly id: string
  /** Whether it needs no credential. */
  readonly isPublic: boolean
  /** The names of its query parameters; null: any are accepted. */
  readonly query: ReadonlySet<string> | null
  readonly body: Shape
  /** Whether it takes no body. Not checked for reads: a body has no meaning there. */
  readonly isBodyless: boolean
  /** Its answer, if that may be sent back as a body. */
  readonly readBack: Shape | null
}

const listOf = (value: unknown): ReadonlyArray<JsonSchema> => (Array.isArray(value) ? value.filter(isObject) : [])

const at = (value: unknown, ...names: ReadonlyArray<string>): unknown =>
  names.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value)

/** The record of an answer, when it is in `data`. */
const within = (answer: Shape): Shape => {
  const members = membersOf(answer)
  return members.size === 1 ? (members.get("data")?.() ?? answer) : answer
}

const make = (): ReadonlyMap<string, KnownOperation> => {
  const document: JsonSchema = publishedDocument()
  const shapes = new Shapes(at(document, "components", "schemas") as JsonSchema)
  const operations = new Map<string, KnownOperation>()
  for (const [path, item] of Object.entries(document["paths"] as JsonSchema)) {
    for (const [method, operation] of Object.entries(isObject(item) ? item : {})) {
      if (!isObject(operation)) continue
      const parameters = listOf(operation["parameters"]).filter(({ in: place }) => place === "query")
      const body = at(operation, "requestBody", "content", "application/json", "schema")
      const answers = Object.entries(isObject(operation["responses"]) ? operation["responses"] : {})
      const answer = answers.find(([status]) => status.startsWith("2"))?.[1]
      const isReadBack = method === "put" || method === "patch" || operation[readBackMark] === true
      operations.set(`${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`, {
        id: String(operation["operationId"]),
        isPublic: Array.isArray(operation["security"]) && operation["security"].length === 0,
        query: operation[anyParametersMark] === true ? null : new Set(parameters.map(({ name }) => String(name))),
        body: body === undefined ? [] : shapes.of(body),
        isBodyless: method !== "get" && operation["requestBody"] === undefined && operation[anyParametersMark] !== true,
        readBack: isReadBack ? within(shapes.of(at(answer, "content", "application/json", "schema"))) : null
      })
    }
  }
  return operations
}

let made: ReadonlyMap<string, KnownOperation> | null = null

/** The operation of a route of the contract (`/sources/:id`); undefined when there is none. */
export const knownOperation = (method: string, route: string): KnownOperation | undefined =>
  (made ??= make()).get(`${method === "HEAD" ? "GET" : method} ${route}`)
