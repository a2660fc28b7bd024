import { OpenApi } from "effect/http-api"
import { Api } from "../../packages/api/src/contract/Api.ts"
import { formatted } from "./Markdown.ts"

/**
 * The document that a gateway serves as `/openapi.json`, generated from the contract without a gateway. Everything that is read
 * from it here goes into committed files.
 */

/** The part of JSON schema that the contract uses. */
export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly enum?: ReadonlyArray<unknown>
  readonly default?: unknown
  readonly format?: string
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly anyOf?: ReadonlyArray<Schema>
  readonly allOf?: ReadonlyArray<Schema>
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: boolean | Schema
  readonly patternProperties?: Readonly<Record<string, Schema>>
}

export interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly example?: unknown
  readonly schema: Schema
}

interface Media {
  readonly schema: Schema
  readonly example?: unknown
}

interface Answer {
  readonly description: string
  readonly content?: Readonly<Record<string, Media>>
}

/** An answer in the components of the document. */
interface Shared {
  readonly $ref: string
}

interface Spec {
  readonly operationId: string
  readonly tags: ReadonlyArray<string>
  readonly summary: string
  readonly description: string
  readonly parameters: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, Answer | Shared>>
  readonly security: ReadonlyArray<Readonly<Record<string, ReadonlyArray<string>>>>
}

export interface Operation extends Spec {
  readonly responses: Readonly<Record<string, Answer>>
  readonly method: string
  readonly path: string
}

interface Document {
  readonly tags: ReadonlyArray<{ readonly name: string; readonly description: string }>
  readonly paths: Readonly<Record<string, Readonly<Record<string, Spec>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly responses: Readonly<Record<string, Answer>>
  }
}

export const document = OpenApi.fromApi(Api) as unknown as Document

/** The name of the component that a reference points to. */
export const nameOf = (ref: string): string => ref.split("/").at(-1)!

const answerOf = (answer: Answer | Shared): Answer =>
  "$ref" in answer ? document.components.responses[nameOf(answer.$ref)]! : answer

const methods = ["get", "post", "put", "patch", "delete"]

export const operations: ReadonlyArray<Operation> = Object.entries(document.paths).flatMap(([path, item]) =>
  methods.flatMap((method) => {
    const spec = item[method]
    if (spec === undefined) return []
    const responses = Object.entries(spec.responses).map(([status, answer]) => [status, answerOf(answer)] as const)
    return [{ ...spec, responses: Object.fromEntries(responses), method: method.toUpperCase(), path }]
  })
)

export const schemas = document.components.schemas

/** The schema and the example of the body of a call. */
export const bodyOf = ({ requestBody }: Operation): Media | undefined => requestBody?.content["application/json"]

/** The schema and the example of a successful answer. */
export const successOf = ({ responses }: Operation): { readonly status: string; readonly media: Media | undefined } => {
  const [status, answer] = Object.entries(responses).find(([status]) => Number(status) < 300)!
  return { status, media: Object.values(answer.content ?? {})[0] }
}

const sorted = (named: object): object =>
  Object.fromEntries(Object.entries(named).toSorted(([left], [right]) => (left < right ? -1 : 1)))

/** The text of `packages/client/openapi.json`. Paths and components are sorted by name, so a change of one moves no other. */
export const documentText = (): Promise<string> => {
  const { responses } = document.components
  const components = { ...document.components, schemas: sorted(schemas), responses: sorted(responses) }
  return formatted("openapi.json", JSON.stringify({ ...document, paths: sorted(document.paths), components }))
}
