import { Result, Schema } from "effect"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { ConnectionFields } from "@tidegate/storage/ConnectionState"
import { asObject, every, fieldError, type FieldErrors, judgeBody, type Members } from "@tidegate/resources/Input"
import { Description, Name } from "@tidegate/resources/Members"
import { checkRules, invalidWithRules } from "./ConnectionRules.ts"

const Id = Schema.String.annotate({ message: "must be an id" }).check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/, { message: "must be an id" })
)
const ById = Schema.Struct({ id: Id }).annotate({ message: "must be an object with an id" })

const isoMoment = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:\d{2})$/

/** A time that there is: not the 31st of February, which a lenient parser takes for a day in March. */
const isMoment = (text: string): boolean => {
  const day = text.slice(0, 10)
  const midnight = Date.parse(`${day}T00:00:00Z`)
  return (
    isoMoment.test(text) && Date.parse(text) >= 0 && midnight >= 0 && new Date(midnight).toISOString().startsWith(day)
  )
}

const Moment = Schema.NullOr(Schema.String)
  .annotate({ message: "must be an ISO 8601 time or null" })
  .check(
    Schema.makeFilter(
      (text: string | null) => text === null || isMoment(text) || "must be an ISO 8601 time with a zone, or null"
    )
  )

const Body = Schema.Struct({
  name: Schema.optionalKey(Name),
  description: Schema.optionalKey(Description),
  source_id: Schema.optionalKey(Id),
  source: Schema.optionalKey(ById),
  destination_id: Schema.optionalKey(Id),
  destination: Schema.optionalKey(ById),
  disabled_at: Schema.optionalKey(Moment),
  paused_at: Schema.optionalKey(Moment),
  rules: Schema.optionalKey(Schema.Json)
})

type Body = typeof Body.Type

/** How far a caller's clock may be ahead of ours (ms): its "now" is then taken for ours. */
const clockSkew = 60_000

/** A state cannot begin in the future: nothing would switch it on when that comes. */
const moment = (
  path: "disabled_at" | "paused_at",
  body: Body,
  now: Date
): Result.Result<Date | null | undefined, FieldErrors> => {
  const text = body[path]
  if (text === undefined || text === null) return Result.succeed(text)
  const at = Date.parse(text)
  return at > now.getTime() + clockSkew
    ? fieldError(path, "must not be in the future")
    : Result.succeed(new Date(Math.min(at, now.getTime())))
}

interface Written {
  readonly name: string | undefined
  readonly description: string | null | undefined
  readonly source_id: string | undefined
  readonly destination_id: string | undefined
  readonly disabled_at: Date | null | undefined
  readonly paused_at: Date | null | undefined
  readonly rules: ConnectionFields["rules"] | undefined
}

/** What names the connection, and its ends: one of each. */
const named = [["name"], ["source_id", "source"], ["destination_id", "destination"]] as const

const allThere = (written: Members): Result.Result<void, FieldErrors> => {
  const missing = named.filter((names) => names.every((name) => written[name] === undefined))
  return missing.length === 0 ? Result.void : Result.fail(missing.map(([path]) => ({ path, message: "is required" })))
}

/**
 * What is written; `whole` input names the connection and both of its ends. An id beside an object of the same thing wins:
 * a record that is written back has both.
 */
const judge = (input: Schema.Json, now: Date, whole: boolean): Result.Result<Written, GatewayError> => {
  const members = Result.flatMap(asObject(input), (written) =>
    judgeBody(Body, written, (body) =>
      Result.map(
        every({
          named: whole ? allThere(written) : Result.void,
          disabled_at: moment("disabled_at", body, now),
          paused_at: moment("paused_at", body, now)
        }),
        ({ disabled_at, paused_at }) => ({
          name: body.name,
          description: body.description,
          source_id: body.source_id ?? body.source?.id,
          destination_id: body.destination_id ?? body.destination?.id,
          disabled_at,
          paused_at
        })
      )
    )
  )
  const object = asObject(input)
  const given = Result.isSuccess(object) ? object.success["rules"] : undefined
  const rules = given === undefined ? Result.succeed(undefined) : checkRules(given ?? [])
  if (Result.isSuccess(members) && Result.isSuccess(rules)) {
    return Result.succeed({ ...members.success, rules: rules.success })
  }
  return Result.fail(
    invalidWithRules(Result.isFailure(members) ? members.failure : [], Result.isFailure(rules) ? rules.failure : [])
  )
}

/** What a create stores. */
export const createConnection = (input: Schema.Json, now: Date): Result.Result<ConnectionFields, GatewayError> =>
  Result.map(judge(input, now, true), ({ destination_id = "", name = "", source_id = "", ...written }) => {
    const { description = null, disabled_at = null, paused_at = null, rules = [] } = written
    return { name, source_id, destination_id, description, disabled_at, paused_at, rules }
  })

/** A change in part: the rules that it writes, and what it makes of what is stored; `rules` are replaced whole. */
export const updateConnection = (
  input: Schema.Json,
  now: Date
): Result.Result<
  {
    readonly rules: ConnectionFields["rules"] | undefined
    readonly apply: (stored: ConnectionFields) => Result.Result<ConnectionFields, GatewayError>
  },
  GatewayError
> =>
  Result.map(judge(input, now, false), (written) => ({
    rules: written.rules,
    apply: (stored) =>
      Result.succeed({
        name: written.name ?? stored.name,
        description: written.description === undefined ? stored.description : written.description,
        source_id: written.source_id ?? stored.source_id,
        destination_id: written.destination_id ?? stored.destination_id,
        disabled_at: written.disabled_at === undefined ? stored.disabled_at : written.disabled_at,
        paused_at: written.paused_at === undefined ? stored.paused_at : written.paused_at,
        rules: written.rules ?? stored.rules
      })
  }))
