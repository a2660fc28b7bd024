import { Predicate, Result, Schema, SchemaIssue, SchemaParser } from "effect"
import { isSameJson } from "@tidegate/json/ExactNumber"
import { type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"

/** How the bodies of all resources are judged. Members that nobody knows are ignored. */

/** Whether PostgreSQL can keep the text as it is. */
export const isStorable = (value: string): boolean => !value.includes("\u0000") && value.isWellFormed()

/** The same for all texts and names in a JSON value. */
export const isStorableJson = (value: Schema.Json): boolean => {
  if (typeof value === "string") return isStorable(value)
  if (typeof value !== "object" || value === null) return true
  if (Array.isArray(value)) return value.every(isStorableJson)
  return Object.entries(value).every(([name, inner]) => isStorable(name) && isStorableJson(inner))
}

const missing = "is required"

// What no schema has a message of its own for. Never with the value: it may be a secret.
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) => (issue._tag === "MissingKey" ? missing : SchemaIssue.defaultLeafHook(issue))
})

export type FieldErrors = ReadonlyArray<FieldError>

export const fieldError = (path: string, message: string): Result.Result<never, FieldErrors> =>
  Result.fail([{ path, message }])

/** Decodes a body by its schema; tells every member that is wrong, and then every one that is not there. */
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

/** What several checks have found: of one member only what was found first, because the rest follows from it. */
const together = (faults: FieldErrors, further: FieldErrors): FieldErrors => {
  const told = new Set(faults.map(({ path }) => memberOf(path)))
  return [...faults, ...further.filter(({ path }) => !told.has(memberOf(path)))]
}

/**
 * Decodes a body by its schema, and judges it by `check` as a whole: one answer tells what either of them finds wrong. What
 * does not decode is left out of what `check` sees, which is decoded by `part`: the same, but that nothing is needed. Without a
 * type that is one, nothing can be said of the rest.
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

/** All of the results, or what is wrong in any of them. */
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

/** A member that has to be there. */
export const required = <A>(path: string, value: A | undefined, what = ""): Result.Result<A, FieldErrors> =>
  value === undefined ? fieldError(path, `is required${what}`) : Result.succeed(value)

/** 400 VALIDATION_ERROR for what is wrong. */
export const orInvalid = <A>(result: Result.Result<A, FieldErrors>): Result.Result<A, GatewayError> =>
  Result.mapError(result, invalid)

/** A JSON object. */
export type Members = Readonly<Record<string, Schema.Json>>

const isObject = (value: unknown): value is Members => Predicate.isReadonlyObject(value) && !Array.isArray(value)

/** The body itself, when it is an object. */
export const asObject = (input: Schema.Json): Result.Result<Members, FieldErrors> =>
  isObject(input) ? Result.succeed(input) : fieldError("body", "must be a JSON object")

/** The body with all its settings in `config`: those named may also have been written at its top. */
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
