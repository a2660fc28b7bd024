import openapiTS, { astToString } from "openapi-typescript"
import { formatted } from "./Markdown.ts"
import { document, type Operation, operations, schemas } from "./Contract.ts"

/**
 * The types of `packages/client`: what openapi-typescript makes of the contract, with the errors of all calls as one type. Each
 * call's own list of errors would be nine tenths of the file, and the client throws them as one class.
 */

const isError = (name: string): boolean => name.endsWith("Error") && schemas[name]?.properties?.["code"] !== undefined

const codes = Object.entries(schemas).flatMap(([name, { properties }]) =>
  isError(name) ? (properties?.["code"]?.enum?.map(String) ?? []) : []
)

const errorSchema = {
  type: "object",
  properties: {
    error: { type: "string" },
    code: { type: "string", enum: [...new Set(codes)].toSorted((left, right) => (left < right ? -1 : 1)) },
    status: { type: "integer" },
    message: { type: "string" },
    data: { type: "object", additionalProperties: {} }
  },
  required: ["error", "code", "status", "message"]
}

const failure = {
  description: "What was wrong",
  content: { "application/json": { schema: { $ref: "#/components/schemas/ErrorBody" } } }
}

const withOneFailure = <Spec extends Pick<Operation, "responses">>(spec: Spec): Spec => ({
  ...spec,
  responses: {
    ...Object.fromEntries(Object.entries(spec.responses).filter(([status]) => Number(status) < 300)),
    default: failure
  }
})

/**
 * Left out is what a client is better without: the ingress URLs, which senders need none for; the second method of a call that has two;
 * and the team, which the client is made for.
 */
const paths = Object.fromEntries(
  Object.entries(Object.groupBy(operations, ({ path }) => path))
    .filter(([path]) => !path.startsWith("/e/"))
    .map(([path, calls = []]) => [
      path,
      Object.fromEntries(
        calls
          .filter(({ operationId }) => !/By(?:Put|Post)$/.test(operationId))
          .map(({ method, ...call }) => [
            method.toLowerCase(),
            withOneFailure({ ...call, parameters: call.parameters.filter(({ name }) => name !== "team_id") })
          ])
      )
    ])
)

const described = {
  ...document,
  paths,
  components: {
    ...document.components,
    schemas: {
      ErrorBody: errorSchema,
      ...Object.fromEntries(Object.entries(schemas).filter(([name]) => !isError(name)))
    }
  }
}

/** `allOf` adds bounds to a schema and no type: what a generator makes of it is `& unknown`. */
const withoutAllOf = (_: string, value: unknown): unknown => {
  if (typeof value !== "object" || value === null || !("allOf" in value)) return value
  const { allOf, ...schema } = value
  return Object.assign(schema, ...(allOf as ReadonlyArray<object>))
}

/** The source of `packages/client/src/schema.ts`. */
export const clientTypes = async (): Promise<string> => {
  const source = [
    "/* Made of the contract by openapi-typescript: `npm test -- test/published -u` writes it. */",
    astToString(
      await openapiTS(JSON.stringify(described, withoutAllOf), { alphabetize: true, emptyObjectsUnknown: true })
    ).trim()
  ].join("\n")
  return formatted("schema.ts", source)
}
