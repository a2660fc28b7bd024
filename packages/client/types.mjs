/**
 * Makes `src/schema.ts`, the types of the control API, of `openapi.json`. To import this file is to run it, from Node 20 on. It
 * does nothing while the types are those of the document, which the digest in their first line says.
 */
import { createHash } from "node:crypto"
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

const itself = fileURLToPath(import.meta.url)
const here = dirname(itself)
const target = join(here, "src/schema.ts")

const text = readFileSync(join(here, "openapi.json"), "utf8")
const digest = createHash("sha256").update(text).update(readFileSync(itself)).digest("hex")
const mark = `/* Made of openapi.json by types.mjs: ${digest} */\n`

if (!existsSync(target) || !readFileSync(target, "utf8").startsWith(mark)) {
  // By a rename: whoever else makes or reads the types meanwhile has all of them.
  const aside = `${target}.${process.pid}`
  writeFileSync(aside, mark + (await typesOf(JSON.parse(text))))
  renameSync(aside, target)
}

async function typesOf(document) {
  // The generator needs TypeScript 5, and the project has another: `test` is where both of them are installed.
  const require = createRequire(join(here, "../../test/package.json"))
  const { default: openapiTS, astToString } = require("openapi-typescript")
  const described = JSON.stringify(forClient(document), withoutAllOf)
  return astToString(await openapiTS(described, { alphabetize: true, emptyObjectsUnknown: true }))
}

/**
 * The document as the client needs it: without the ingress URLs, which senders need no client for; without the second method of a
 * call that has two; without the team, which the client is made for; and with the errors of all calls as one type. Each call's
 * own list of errors would be nine tenths of the types, and the client throws them as one class.
 */
function forClient(document) {
  const schemas = Object.entries(document.components.schemas)
  const codes = schemas.filter(isError).flatMap(([, { properties }]) => properties.code.enum ?? [])
  const { responses: _, ...components } = document.components
  const paths = Object.entries(document.paths).filter(([path]) => !path.startsWith("/e/"))
  return {
    ...document,
    paths: Object.fromEntries(paths.map(([path, calls]) => [path, callsForClient(calls)])),
    components: {
      ...components,
      schemas: { ErrorBody: errorOf(codes), ...Object.fromEntries(schemas.filter((schema) => !isError(schema))) }
    }
  }
}

function isError([name, { properties }]) {
  return name.endsWith("Error") && properties?.code !== undefined
}

function errorOf(codes) {
  return {
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
}

function callsForClient(item) {
  // Beside its calls a path has parameters of all of them: the team.
  const calls = Object.entries(item).filter(([name]) => name !== "parameters")
  const kept = calls.filter(([, { operationId }]) => !/By(?:Put|Post)$/.test(operationId))
  return Object.fromEntries(kept.map(([method, call]) => [method, callForClient(call)]))
}

function callForClient(call) {
  const successes = Object.entries(call.responses).filter(([status]) => Number(status) < 300)
  const failure = {
    description: "What was wrong",
    content: { "application/json": { schema: { $ref: "#/components/schemas/ErrorBody" } } }
  }
  return {
    ...call,
    parameters: call.parameters.filter(({ name }) => name !== "team_id"),
    responses: { ...Object.fromEntries(successes), default: failure }
  }
}

/** `allOf` adds bounds to a schema and no type: what a generator makes of it is `& unknown`. */
function withoutAllOf(_, value) {
  if (typeof value !== "object" || value === null || !("allOf" in value)) return value
  const { allOf, ...schema } = value
  return Object.assign(schema, ...allOf)
}
