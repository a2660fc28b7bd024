import { Predicate, Result, Schema, SchemaIssue, SchemaParser } from "effect"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { visitJson } from "@tidegate/json/VisitJson"
import { type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"

/** How the bodies of all resources are validated. Unknown members are ignored. */

/** Whether PostgreSQL can store the text unchanged. */
export const isStorable = (value: string): boolean => !value.includes("\u0000") && value.isWellFormed()

/** The same for all texts and names in a JSON value. */
export const isStorableJson = (root: Schema.Json): boolean =>
  visitJson(
    root,
    (value, name) => (name === null || isStorable(name)) && (typeof value !== "string" || isStorable(value))
  )

const missing = "is required"

// For faults without a message in the schema. Never with the value: it may be a secret.
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => (issue._tag === "MissingKey" ? missing : SchemaIssue.defaultLeafHook(issue))
})

export type FieldErrors = ReadonlyArray<FieldError>

export const fieldError = (path: string, message: string): Result.Result<never, FieldErrors> =>
  Result.fail([{ path, message }])

/** Decodes a body by its schema; reports every wrong member, and then every missing one. */
const decodeBody = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  body: unknown
): Result.Result<S["Type"], FieldErrors> =>
  Result.mapError(SchemaParser.decodeUnknownResult(schema, { errors: "all" })(body), (issue) => {
    const faults = issuesOf(issue).issues.map(({ message, path }) => ({
      path: (path ?? []).map(String).join("."),
      message: message.replace(/^Expected /, "must be ")
    }))
    const isMissing = ({ message }: FieldError) => message === missing
    return [...faults.filter((fault) => !isMissing(fault)), ...faults.filter(isMissing)]
  })

/** The member of a body, or of its `config`, that a fault is about. */
const memberOf = (path: string): string => /^(?:config\.)?[^.[]+/.exec(path)?.[0] ?? path

const without = (body: Members, faults: FieldErrors): Members => {
  const wrong = new Set(faults.map(({ path }) => memberOf(path)))
  const right = (members: Members, prefix: string) =>
    Object.fromEntries(Object.entries(members).filter(([name]) => !wrong.has(prefix + name)))
  const config = body["config"]
  return { ...right(body, ""), ...(isObject(config) ? { config: right(config, "config.") } : {}) }
}

/** Combines the faults of several checks; for each member only the first one, because the others follow from it. */
const together = (faults: FieldErrors, further: FieldErrors): FieldErrors => {
  const reported = new Set(faults.map(({ path }) => memberOf(path)))
  return [...faults, ...further.filter(({ path }) => !reported.has(memberOf(path)))]
}

/**
 * Decodes a body by its schema and validates it as a whole by `check`: one answer has the faults of both. Members that do not
 * decode are left out for `check`, whose input is decoded by `part`: the same schema with nothing required. Without a valid type
 * nothing more can be checked.
 */
export const judgeBody = <S extends Schema.ConstraintDecoder<unknown>, A>(
  schema: S,
  body: Members,
  check: (body: S["Type"]) => Result.Result<A, FieldErrors>,
  part: Schema.ConstraintDecoder<unknown> = schema
): Result.Result<A, FieldErrors> =>
  Result.match(decodeBody(schema, body), {
    onSuccess: check,
    onFailure: (faults) => {
      const rest = faults.some(({ path }) => path === "type")
        ? Result.fail([])
        : Result.flatMap(decodeBody(part, without(body, faults)), check)
      return Result.fail(together(faults, Result.isFailure(rest) ? rest.failure : []))
    }
  })

/** All results, or the faults of any of them. */
export const every = <Results extends Readonly<Record<string, Result.Result<unknown, FieldErrors>>>>(
  results: Results
): Result.Result<
  { readonly [Name in keyof Results]: Results[Name] extends Result.Result<infer A, FieldErrors> ? A : never },
  FieldErrors
> => {
  const entries = Object.entries(results)
  const faults = entries.reduce<FieldErrors>(
    (found, [, result]) => (Result.isFailure(result) ? together(found, result.failure) : found),
    []
  )
  if (faults.length > 0) return Result.fail(faults)
  return Result.succeed(Object.fromEntries(entries.map(([name, result]) => [name, Result.getOrThrow(result)])) as never)
}

/** A member that is required. */
export const required = <A>(path: string, value: A | undefined, what = ""): Result.Result<A, FieldErrors> =>
  value === undefined ? fieldError(path, `is required${what}`) : Result.succeed(value)

/** 400 VALIDATION_ERROR for faults. */
export const orInvalid = <A>(result: Result.Result<A, FieldErrors>): Result.Result<A, GatewayError> =>
  Result.mapError(result, invalid)

/** A JSON object. */
export type Members = Readonly<Record<string, Schema.Json>>

export const isObject = (value: unknown): value is Members => Predicate.isReadonlyObject(value) && !Array.isArray(value)

/** The body itself, when it is an object. */
export const asObject = (input: Schema.Json): Result.Result<Members, FieldErrors> =>
  isObject(input) ? Result.succeed(input) : fieldError("body", "must be a JSON object")

/** The body with all its settings in `config`: the named ones may also have been written at its top. */
export const nestConfig = (input: Schema.Json, names: ReadonlyArray<string>): Result.Result<Members, FieldErrors> =>
  Result.flatMap(asObject(input), (body) => {
    const written: unknown = body["config"] ?? {}
    if (!isObject(written)) return fieldError("config", "must be an object")
    const config: Record<string, Schema.Json> = { ...written }
    const faults: Array<FieldError> = []
    for (const name of names) {
      const flat = body[name]
      if (flat === undefined) continue
      if (Object.hasOwn(config, name) && !isSameJson(config[name], flat)) {
        faults.push({ path: name, message: `differs from config.${name}, which is the same setting` })
      }
      config[name] = flat
    }
    return faults.length === 0 ? Result.succeed({ ...body, config }) : Result.fail(faults)
  })
