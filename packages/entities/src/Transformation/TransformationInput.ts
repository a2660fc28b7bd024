import { Result, Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { maxCode } from "@tidegate/model/BodyLimits"
import type { Env as EnvRecord } from "@tidegate/model/Transformation"
import type { TransformationChange, TransformationFields } from "@tidegate/storage/Transformations"
import { asObject, every, type FieldErrors, isStorable, judgeBody, Name, orInvalid, required } from "../Input.ts"

const mostVariables = 100
const largestEnv = 64 * 1024

const bytes = (text: string): number => Buffer.byteLength(text, "utf8")

/** The code of a transformation: some text; whether it compiles is the sandbox's to say. */
export const Code = Schema.String.annotate({ message: "must be a string" }).check(
  Schema.makeFilter((code: string) => {
    if (code.trim() === "") return "must not be empty"
    if (bytes(code) > maxCode) return `must be at most ${maxCode} bytes`
    return isStorable(code) || "must be valid Unicode text without NUL"
  })
)

/** Variables; null is none. What is wrong is told without the values: they may be secrets. */
export const Env = Schema.NullOr(Schema.Record(Schema.String, Schema.String.annotate({ message: "must be a string" })))
  .annotate({ message: "must be an object of strings" })
  .check(
    Schema.makeFilter((env: EnvRecord | null) => {
      const variables = Object.entries(env ?? {})
      if (variables.length > mostVariables) return `must have at most ${mostVariables} variables`
      if (!variables.every(([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name))) {
        return "must have names of letters, digits and underscores that do not begin with a digit"
      }
      if (!variables.every(([, value]) => isStorable(value))) return "must be valid Unicode text without NUL"
      const size = variables.reduce((sum, [name, value]) => sum + bytes(name) + bytes(value), 0)
      return size <= largestEnv || `must be at most ${largestEnv} bytes, names and values together`
    })
  )

const Body = Schema.Struct({
  name: Schema.optionalKey(Name),
  code: Schema.optionalKey(Code),
  env: Schema.optionalKey(Env)
})

const judge = <A>(
  input: Schema.Json,
  check: (body: typeof Body.Type) => Result.Result<A, FieldErrors>
): Result.Result<A, FieldErrors> => Result.flatMap(asObject(input), (body) => judgeBody(Body, body, check))

/** A transformation as it is written: with its name and its code. */
export const wholeTransformation = (
  input: Schema.Json
): Result.Result<TransformationPart & Pick<TransformationFields, "name" | "code">, GatewayError> =>
  orInvalid(
    judge(input, ({ code, env, name }) =>
      Result.map(every({ name: required("name", name), code: required("code", code) }), (whole) => ({
        ...whole,
        ...(env === undefined ? {} : { env })
      }))
    )
  )

/** What a create stores. */
export const createTransformation = (input: Schema.Json): Result.Result<TransformationFields, GatewayError> =>
  Result.map(wholeTransformation(input), ({ code, env, name }) => ({ name, code, env: env ?? {} }))

/** A change in part: what it writes. `env` is replaced whole. */
export interface TransformationPart {
  readonly name?: string
  readonly code?: string
  readonly env?: EnvRecord | null
}

export const partOfTransformation = (input: Schema.Json): Result.Result<TransformationPart, GatewayError> =>
  orInvalid(judge(input, Result.succeed))

/** What a change in part makes of what is stored. */
export const changeTransformation =
  ({ code, env, name }: TransformationPart) =>
  (stored: TransformationFields): Result.Result<TransformationChange, GatewayError> =>
    Result.succeed({
      name: name ?? stored.name,
      code: code ?? stored.code,
      env: env === undefined ? "unchanged" : (env ?? {})
    })
