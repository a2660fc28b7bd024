import { OpenApi } from "effect/http-api"
import { resolveMarks } from "@tidegate/resources/DescribedAs"
import { markDeprecated } from "./Deprecation.ts"
import { ids } from "./Examples.ts"
import { andFailures, anyParametersMark } from "./Operation.ts"
import { shareFailures } from "./SharedResponses.ts"
import { IngressApi } from "../ingress/IngressApi.ts"

type Specification = OpenApi.OpenAPISpec
type PathItem = OpenApi.OpenAPISpecPathItem

const teamHeader = {
  name: "x-team-id",
  in: "header",
  required: false,
  description: "The team to act on. By default (and without team_id) it is the API key's or the session's team",
  schema: { type: "string", maxLength: 200 },
  example: ids.team
}

const idempotencyHeader = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "The call is carried out once for each key of a caller. For a day, repeated calls return the same answer. 1 to 255 characters of printable ASCII",
  schema: { type: "string", minLength: 1, maxLength: 257 },
  example: '"8e03978e-40d5-43e8-bc93-6894a57f9324"'
}

const tagHeader = {
  description: "Identifies these bytes. `If-None-Match` checks whether they have changed",
  schema: { type: "string" }
}

const conditionHeader = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description: "The `ETag` of an answer that the caller has. While it is unchanged, the answer is 304 without a body",
  schema: { type: "string", maxLength: 4096 }
}

/** Added to every read that returns JSON. */
const tagged = (path: PathItem): PathItem => {
  const { get } = path
  const ok = get?.responses["200"]
  if (get === undefined || ok?.content?.["application/json"] === undefined) return path
  return {
    ...path,
    get: {
      ...get,
      parameters: [...get.parameters, { $ref: "#/components/parameters/IfNoneMatch" }],
      responses: {
        ...get.responses,
        200: { ...ok, headers: { ETag: tagHeader } },
        304: { description: "The caller has the current version.", headers: { ETag: tagHeader } }
      }
    } as unknown as NonNullable<PathItem["get"]>
  }
}

/** Added to every POST that needs a credential. */
const keyed = (path: PathItem): PathItem => {
  const { post } = path
  if (post === undefined || post.security?.length === 0) return path
  return {
    ...path,
    post: {
      ...post,
      parameters: [...post.parameters, { $ref: "#/components/parameters/IdempotencyKey" }],
      responses: andFailures(post.responses, ["IDEMPOTENCY_KEY_IN_USE", "IDEMPOTENCY_KEY_REUSED"])
    } as unknown as NonNullable<PathItem["post"]>
  }
}

const unread = ["delete", "patch", "post", "put"] as const

/** Added to every write without a body: a body that is sent anyway is refused, and not read beyond a limit. */
const bodyless = (path: PathItem): PathItem => {
  const changed = unread.flatMap((method) => {
    const operation = path[method]
    if (operation === undefined || operation.requestBody !== undefined || anyParametersMark in operation) return []
    const codes =
      operation.security?.length === 0
        ? (["VALIDATION_ERROR", "PAYLOAD_TOO_LARGE"] as const)
        : (["PAYLOAD_TOO_LARGE"] as const)
    return [[method, { ...operation, responses: andFailures(operation.responses, codes) }] as const]
  })
  return { ...path, ...(Object.fromEntries(changed) as Partial<PathItem>) }
}

/** Sent in the same way as API keys, and generated together with them; the generator has no place for the rest. */
const sessionScheme = {
  type: "http",
  scheme: "bearer",
  description: "The token of a session (`/auth/...`). The listed role in the team is required."
} as const

const projectKeyScheme = {
  type: "http",
  scheme: "bearer",
  description:
    "A key of `/project-api-keys`. The listed scope is required. control:execute also requires a grant for the route."
} as const

/** Moves the meaning of a parameter from its schema to the parameter, where generators of clients look for it. */
const describeParameter = (parameter: OpenApi.OpenAPISpecParameter): object => {
  if ("$ref" in parameter) return parameter
  const {
    description,
    examples: [example] = [],
    ...schema
  } = parameter.schema as { readonly description?: string; readonly examples?: ReadonlyArray<unknown> }
  return {
    ...parameter,
    ...(description === undefined ? {} : { description }),
    ...(example === undefined ? {} : { example }),
    schema
  }
}

const methods = ["get", "put", "post", "delete", "patch"] as const

const describeParameters = (path: PathItem): PathItem => {
  const operations = methods.flatMap((method) => {
    const operation = path[method]
    return operation === undefined
      ? []
      : [[method, { ...operation, parameters: operation.parameters.map(describeParameter) }] as const]
  })
  return { ...path, ...Object.fromEntries(operations) }
}

type Schemas = Specification["components"]["schemas"]

/** References to components that only refer to another one, and what those refer to. The generator makes such components for recursive schemas. */
const aliasesIn = (schemas: Schemas): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(schemas).flatMap(([name, schema]) => {
      const [key, ...more] = Object.keys(schema)
      return key === "$ref" && more.length === 0 ? [[referenceTo(name), String(schema["$ref"])] as const] : []
    })
  )

const referenceTo = (name: string): string => `#/components/schemas/${name}`

interface Nullable {
  readonly anyOf?: ReadonlyArray<{ readonly type?: string; readonly format?: string; readonly description?: string }>
  readonly description?: string
}

/**
 * What a value means is said beside `anyOf`, where it may be null: generators of clients show only that where the member is named.
 * All times are described alike, so theirs stays with the time.
 */
const describeNullable = (value: object): object => {
  if (!("anyOf" in value)) return value
  const { anyOf = [], description } = value as Nullable
  const [one, ...more] = anyOf.filter(({ type }) => type !== "null")
  if (description !== undefined || one?.description === undefined || one.format === "date-time" || more.length > 0) {
    return value
  }
  const { description: said, ...rest } = one
  return { ...value, anyOf: anyOf.map((each) => (each === one ? rest : each)), description: said }
}

/** A copy of a part of the document that has no references to aliases, and describes nullable values. */
const finish = (value: unknown, aliases: ReadonlyMap<unknown, unknown>): unknown => {
  if (Array.isArray(value)) return value.map((each) => finish(each, aliases))
  if (typeof value !== "object" || value === null) return value
  const finished: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    finished[name] = name === "$ref" ? (aliases.get(member) ?? member) : finish(member, aliases)
  }
  return describeNullable(finished)
}

const mapPaths = (paths: Specification["paths"], change: (path: PathItem) => object): Record<string, object> =>
  Object.fromEntries(Object.entries(paths).map(([name, path]) => [name, change(path)]))

/**
 * The document as generated from the contract, completed with what the generator cannot express: the ingress URLs, the header
 * that every call may have, and the resolved marks. Failures are shared by the operations.
 */
export const completeDocument = (generated: Specification): object => {
  const ingress = OpenApi.fromApi(IngressApi)
  const resolved = resolveMarks({
    ...generated,
    tags: [...generated.tags, ...ingress.tags],
    components: {
      ...generated.components,
      parameters: { TeamId: teamHeader, IdempotencyKey: idempotencyHeader, IfNoneMatch: conditionHeader },
      securitySchemes: {
        ...generated.components.securitySchemes,
        session: sessionScheme,
        project_key: projectKeyScheme
      },
      schemas: { ...ingress.components.schemas, ...generated.components.schemas }
    },
    paths: {
      ...mapPaths(generated.paths, (path) => ({
        parameters: [{ $ref: "#/components/parameters/TeamId" }],
        ...tagged(bodyless(keyed(path)))
      })),
      ...ingress.paths
    }
  }) as Specification
  const { components } = resolved
  const aliases = aliasesIn(components.schemas)
  const schemas = Object.fromEntries(
    Object.entries(components.schemas).filter(([name]) => !aliases.has(referenceTo(name)))
  )
  const document = finish({ ...resolved, components: { ...components, schemas } }, aliases) as Specification
  return markDeprecated(shareFailures({ ...document, paths: mapPaths(document.paths, describeParameters) }))
}
