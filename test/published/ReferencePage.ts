import { headingAnchor } from "../../packages/api/src/HeadingAnchor.ts"
import { bodyOf, document, nameOf, type Operation, operations, type Schema, schemas, successOf } from "./Contract.ts"
import { introductions } from "./Introductions.ts"
import { fence, page, table } from "./Markdown.ts"
import { linkedFrom, meaningOf, membersOf, type Row, typeOf } from "./SchemaText.ts"

/**
 * `docs/api/`: a page for each group of operations, generated from the contract, with an introduction that is written by hand.
 */

export const fileOf = (tag: string): string => `${tag.toLowerCase().replaceAll(" ", "-")}.md`

export const tags = document.tags

/** Errors of every call. The entry page describes them once. */
const everywhere: ReadonlySet<string> = new Set([
  "VALIDATION_ERROR",
  "UNAUTHENTICATED",
  "INVALID_API_KEY",
  "SESSION_EXPIRED",
  "TEAM_FORBIDDEN",
  "INSUFFICIENT_SCOPE",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "QUEUE_UNAVAILABLE",
  "INVALID_JSON",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_CONTENT_TYPE",
  "IDEMPOTENCY_KEY_IN_USE",
  "IDEMPOTENCY_KEY_REUSED"
])

/** The page that describes a component: that of the first group with an operation that uses it. Errors have none. */
const home = new Map<string, string>()
const assign = (tag: string, schema: Schema): void => {
  for (const name of linkedFrom(schema)) {
    if (home.has(name)) continue
    home.set(name, tag)
    assign(tag, schemas[name]!)
  }
}
for (const { name } of tags) {
  for (const operation of operations.filter(({ tags }) => tags[0] === name)) {
    assign(name, bodyOf(operation)?.schema ?? {})
    assign(name, successOf(operation).media?.schema ?? {})
  }
}

/**
 * The components of request bodies. Their tables show which members are required; those of other components show which members
 * are always present.
 */
const written = new Set<string>()
const gather = (schema: Schema): void => {
  for (const name of linkedFrom(schema)) {
    if (written.has(name)) continue
    written.add(name)
    gather(schemas[name]!)
  }
}
for (const operation of operations) gather(bodyOf(operation)?.schema ?? {})

const linkFrom =
  (tag: string) =>
  (name: string): string => {
    const at = home.get(name)
    return at === undefined ? name : `[${name}](${at === tag ? "" : fileOf(at)}#${headingAnchor(name)})`
  }

const callers = ({ security }: Operation): string => {
  if (security.length === 0) return "anyone"
  const who = security.flatMap((one) => {
    if ("bearer" in one) return ["team key"]
    if (one["project_key"]?.length === 0) return ["any project key"]
    return (one["project_key"] ?? []).map((scope) => `key with \`${scope}\``).concat(one["session"] ?? [])
  })
  return who.length === 0 ? "the user themselves" : who.join(", ")
}

const codesOf = (operation: Operation): ReadonlyArray<readonly [string, string, string]> =>
  Object.entries(operation.responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, { content = {} }]) =>
      Object.values(content)
        .flatMap(({ schema }) => schema.anyOf ?? [schema])
        .flatMap(({ $ref = "" }) => {
          const { description = "", properties } = schemas[nameOf($ref)]!
          const code = String(properties?.["code"]?.enum?.[0])
          return everywhere.has(code) ? [] : [[status, `\`${code}\``, description] as const]
        })
    )

/** The curl command of an operation's example. */
const exampleOf = (operation: Operation): string => {
  const { method, parameters, path, security } = operation
  const examples = parameters.filter(({ example }) => example !== undefined)
  const target = examples
    .filter((parameter) => parameter.in === "path")
    .reduce((url, { example, name }) => url.replace(`{${name}}`, String(example)), path)
  const query = examples
    .filter((parameter) => parameter.in === "query" && parameter.name !== "team_id")
    .map(({ example, name }) => `${name}=${encodeURIComponent(String(example))}`)
    .join("&")
  const body = bodyOf(operation)?.example
  const origin = path.startsWith("/e/") ? "$ORIGIN" : "$API"
  return [
    `curl -s ${method === "GET" ? "" : `-X ${method} `}"${origin}${target}${query === "" ? "" : `?${query}`}"`,
    ...(security.length === 0 ? [] : ['-H "Authorization: Bearer $KEY"']),
    ...(body === undefined
      ? []
      : ["-H 'content-type: application/json'", `-d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`])
  ].join(" \\\n  ")
}

/** Operations with another method and the same effect are in the section of the first one. */
const sections = (all: ReadonlyArray<Operation>): ReadonlyArray<ReadonlyArray<Operation>> => {
  const byName = Map.groupBy(all, ({ operationId, path }) => `${operationId.replace(/By[A-Z][a-z]+$/, "")} ${path}`)
  return [...byName.values()]
}

const calls = (group: ReadonlyArray<Operation>): string =>
  `\`${group.map(({ method }) => method).join("`, `")} ${group[0]!.path}\``

const describeOperation = (group: ReadonlyArray<Operation>, link: (name: string) => string): ReadonlyArray<string> => {
  const operation = group[0]!
  const { status, media } = successOf(operation)
  const body = bodyOf(operation)
  const codes = codesOf(operation)
  // Parameters that many calls share are described once, for all calls.
  const parameters = operation.parameters.filter((one) => !("$ref" in one) && one.name !== "team_id")
  const inlined = media?.schema.$ref === undefined && media?.schema !== undefined ? membersOf(media.schema, link) : []
  return [
    `## ${operation.summary}`,
    `${calls(group)} · ${callers(operation)} · \`${operation.operationId}\``,
    operation.description,
    parameters.length === 0
      ? ""
      : table(
          ["Parameter", "In", "Type", "Meaning"],
          parameters.map((one) => [
            `\`${one.name}\`${one.required === true ? " *" : ""}`,
            one.in,
            typeOf(one.schema, link),
            meaningOf({ ...one.schema, description: one.description ?? "" })
          ])
        ),
    body === undefined ? "" : `Body: ${typeOf(body.schema, link)}.`,
    fence("sh", exampleOf(operation)),
    `Answer: ${status}${media === undefined ? "" : `, ${typeOf(media.schema, link)}`}.`,
    inlined.length === 0 ? "" : members(inlined, "Always there"),
    media?.example === undefined ? "" : fence("json", JSON.stringify(media.example, null, 2)),
    codes.length === 0 ? "" : table(["Status", "Code", "When"], codes)
  ]
}

const members = (rows: ReadonlyArray<Row>, needed: string): string =>
  table(
    ["Member", needed, "Type", "Meaning"],
    rows.map(({ meaning, name, needed, type }) => [`\`${name}\``, needed ? "yes" : "", type, meaning])
  )

const describeSchema = (name: string, schema: Schema, link: (name: string) => string): ReadonlyArray<string> => {
  const rows = membersOf(schema, link)
  return [
    `### ${name}`,
    schema.description ?? "",
    rows.length === 0 ? `${typeOf(schema, link)}.` : members(rows, written.has(name) ? "Required" : "Always there")
  ]
}

export const referencePage = ({ description, name }: (typeof tags)[number]): Promise<string> => {
  const link = linkFrom(name)
  const groups = sections(operations.filter(({ tags }) => tags[0] === name))
  const own = Object.entries(schemas).filter(([schema]) => home.get(schema) === name)
  return page([
    `# ${name}`,
    description,
    introductions[name] ?? "",
    table(
      ["Call", "", "Who"],
      groups.map((group) => [
        calls(group),
        `[${group[0]!.summary}](#${headingAnchor(group[0]!.summary)})`,
        callers(group[0]!)
      ])
    ),
    "[The control API](../api.md) describes what applies to every call, including the errors that any call can return. `*`: required.",
    ...groups.flatMap((group) => describeOperation(group, link)),
    own.length === 0 ? "" : "## Members",
    ...own
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .flatMap(([schema, of]) => describeSchema(schema, of, link))
  ])
}
