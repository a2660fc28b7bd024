import { Schema } from "effect"
import { maxCode, maxCodeBody } from "@tidegate/model/BodyLimits"
import { prefixes } from "@tidegate/model/Ids"
import { administering, notByProjectKeys, reading } from "@tidegate/model/Permission"
import { type Env as EnvRecord, Isolation as Isolations, Transformation } from "@tidegate/model/Transformation"
import { describedAs } from "./DescribedAs.ts"
import { isStorable } from "./Input.ts"
import { Name, OneOf, text } from "./Members.ts"
import { type ChangeOf, type FieldsOf, plainBodies, resource } from "./Resource.ts"
import { ids, times } from "./ExampleIds.ts"

export const maxVariables = 100
export const largestEnv = 64 * 1024
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/u

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

/** The code of a transformation: any text; the sandbox checks whether it compiles. */
export const Code = text
  .check(
    Schema.makeFilter(
      (code: string) => {
        if (code.trim() === "") return "must not be empty"
        if (bytes(code) > maxCode) return `must be at most ${maxCode} bytes`
        return isStorable(code) || "must be valid Unicode text without NUL"
      },
      { toJsonSchema: () => ({ minLength: 1, maxLength: maxCode }) }
    )
  )
  .annotate({
    description: "JavaScript that passes a handler to addHandler: it gets a request and returns one; at most 1 MiB"
  })

const ShownVariables = Schema.Record(Schema.String.check(Schema.isPattern(variableName)), Schema.String).check(
  Schema.isMaxProperties(maxVariables)
)

/** Variables; null means none. Errors never contain the values: they may be secrets. */
export const Env = Schema.NullOr(Schema.Record(Schema.String, text).pipe(describedAs(ShownVariables)))
  .annotate({ message: "must be an object of strings" })
  .check(
    Schema.makeFilter(
      (env: EnvRecord | null) => {
        const variables = Object.entries(env ?? {})
        if (variables.length > maxVariables) return `must have at most ${maxVariables} variables`
        if (!variables.every(([name]) => variableName.test(name))) {
          return "must have names of letters, digits and underscores that do not begin with a digit"
        }
        if (!variables.every(([, value]) => isStorable(value))) return "must be valid Unicode text without NUL"
        const size = variables.reduce((sum, [name, value]) => sum + bytes(name) + bytes(value), 0)
        return size <= largestEnv || `must be at most ${largestEnv} bytes, names and values together`
      },
      { toJsonSchema: () => ({}) }
    )
  )
  .annotate({ description: "Variables in process.env and context.env; replaced as a whole. At most 100, and 64 KiB" })

/** Null is the default, which is `sealed`. */
const Isolation = Schema.NullOr(OneOf(Isolations.literals)).annotate({
  message: `must be one of ${Isolations.literals.join(", ")}, or null`,
  description:
    "`fresh`: each call has a new context. `sealed` (the default): calls reuse an isolate, which is faster, unless the results of the code differ there"
})

const body = {
  name: "add-tenant",
  code: [
    'addHandler("transform", (request, context) => ({',
    "  ...request,",
    "  headers: { ...request.headers, tenant: process.env.TENANT }",
    "}))"
  ].join("\n"),
  env: { TENANT: "acme" }
}

export const example = {
  body,
  patch: { env: { TENANT: "acme-2" } },
  record: {
    id: ids.transformation,
    team_id: ids.team,
    ...body,
    runtime: "js-v1",
    code_hash: "3c9ab1c52fb6c5a4a6f0e7a2a1b2ad6a7c6b4f1f0f5d5c1e4a1d8f3b6a2e9c10",
    isolation: null,
    isolation_reason: null,
    deleted_at: null,
    executions_24h_count: 12,
    executions_24h_successful_count: 12,
    executions_24h_failed_count: 0,
    executions_24h_successful_bins: [0, 0, 0, 2, 4, 6],
    executions_24h_failed_bins: [0, 0, 0, 0, 0, 0],
    connections_count: 1,
    ...times
  }
}

const bodies = plainBodies({
  name: "transformation",
  needed: { name: Name, code: Code },
  settings: { env: Env, isolation: Isolation },
  defaults: { env: {}, isolation: null },
  sealed: ["env"],
  example: example.body
})

/** Code that changes requests on their way. */
export const transformation = resource({
  name: "transformation",
  plural: "transformations",
  prefix: prefixes.transformation,
  description: "Code that reshapes requests before delivery.",
  // It runs with the secrets in `env`.
  permissions: { read: notByProjectKeys(reading), edit: administering },
  said: {
    create: { description: "A rule of type `transform` uses it." },
    upsert: { description: "Absent variables stay unchanged, and so do its id and the rules that name it." },
    retrieve: { description: "Includes its code, and counts of the last 24 hours." },
    update: {
      description: "Members in the body replace the stored ones, `env` as a whole. Waiting requests use the new code."
    },
    delete: {
      summary: "Delete a transformation that no connection uses",
      description: "Its name can be used again; its executions stay until retention removes them."
    }
  },
  record: Transformation,
  ...bodies,
  // It includes the code too: an upsert is not a partial change.
  upsert: bodies.change,
  columns: { name: "plain", code: "plain", env: "sealed", isolation: "plain" },
  switches: [],
  weight: "octet_length(t.code)",
  largestBody: maxCodeBody,
  most: 1_000,
  errors: { write: ["TRANSFORMATION_INVALID"], delete: ["RESOURCE_IN_USE"] },
  example
})

export type TransformationFields = FieldsOf<typeof transformation>
export type TransformationChange = ChangeOf<typeof transformation>
