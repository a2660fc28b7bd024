import { Result, Schema } from "effect"
import { isGateways, setByClient } from "@tidegate/model/HeaderRules"
import { type ScheduleSettings, scheduledType } from "@tidegate/model/ScheduledSource"
import { compileScheduledBody, longestScheduledBody } from "@tidegate/rules/ScheduledBody"
import { credentialHeaders } from "@tidegate/verification/PresentedPlaces"
import { describedAs } from "../DescribedAs.ts"
import { every, fieldError, type FieldErrors, isStorableJson, judgeBody } from "../Input.ts"
import { HeaderName, optional } from "../Members.ts"
import { Cron, faultOf, missedOf, normalCron, Timezone } from "../ScheduleTimes.ts"

/** `config.schedule`: when a source of type CRON makes its requests, and what they contain, as it is written. */

const mostHeaders = 20
const longestValue = 1_024
const object = "must be an object or null"

/** A setting that may be absent or null: then it has its default. */
const setting = <S extends Schema.Top>(schema: S, message: string) =>
  optional(Schema.NullOr(schema).annotate({ message }))

const HeaderValue = Schema.String.annotate({ message: "must be a string" }).check(
  Schema.isPattern(new RegExp(String.raw`^[\x20-\x7e]{0,${longestValue}}$`, "u"), {
    message: `must be at most ${longestValue} printable ASCII characters`
  })
)

const members = {
  cron: optional(Cron),
  timezone: setting(Timezone, "must be a string or null"),
  missed: setting(missedOf("make no request"), "must be skip, once, all or null"),
  body: optional(
    Schema.Json.annotate({
      description: `At most ${longestScheduledBody} characters of JSON. Its texts may contain \`{{scheduled_at}}\`, \`{{cron}}\`, \`{{timezone}}\`, \`{{source.id}}\` and \`{{source.name}}\`. Null: an object with all of them`
    })
  ),
  headers: setting(
    Schema.Record(Schema.String, HeaderValue)
      .annotate({ message: object })
      .check(Schema.isMaxProperties(mostHeaders, { message: `must be at most ${mostHeaders}` }))
      .pipe(
        describedAs(
          Schema.Record(HeaderName, HeaderValue)
            .check(Schema.isMaxProperties(mostHeaders))
            .annotate({ description: "Headers of the requests; they are replaced as a whole" })
        )
      ),
    object
  )
}

const Written = Schema.Struct(members)

const Described = Schema.NullOr(
  Schema.Struct({ ...members, cron: Cron }).annotate({ identifier: "ScheduleSettingsWrite" })
)
const DescribedPatch = Schema.NullOr(Written.annotate({ identifier: "ScheduleSettingsPatch" }))

const undecoded = Schema.NullOr(Schema.JsonObject).annotate({ message: object })

/** Decoded in `scheduleSettings`, so that one answer has all faults. */
export const WrittenSchedule = undecoded.pipe(describedAs(Described))
export const PatchedSchedule = undecoded.pipe(describedAs(DescribedPatch))

/** `config` of a source of type CRON, for the document. */
export const ScheduledConfig = Schema.Struct({ schedule: WrittenSchedule }).annotate({
  identifier: "ScheduledSourceConfig"
})
export const scheduleExample = {
  cron: "0 3 * * *",
  timezone: "Europe/Berlin",
  body: { report: "nightly", for: "{{scheduled_at}}" }
}

const isHeaderName = Schema.is(HeaderName)

const headerFault = (name: string, all: ReadonlyArray<string>): string | null => {
  if (!isHeaderName(name)) return "is no name of a header"
  if (all.filter((one) => one.toLowerCase() === name.toLowerCase()).length > 1) return "is there twice"
  const lower = name.toLowerCase()
  if (setByClient.has(lower) || isGateways(lower) || lower === "content-type") return "is set by the gateway"
  return credentialHeaders.includes(lower)
    ? "is a credential, which everybody could read here: write it into the auth of the destination"
    : null
}

const headersOf = (
  written: Readonly<Record<string, string>> | null | undefined,
  stored: ScheduleSettings | null
): Result.Result<ScheduleSettings["headers"], FieldErrors> => {
  if (written === undefined) return Result.succeed(stored?.headers ?? {})
  const names = Object.keys(written ?? {})
  const faults = names.flatMap((name) => {
    const message = headerFault(name, names)
    return message === null ? [] : [{ path: "headers", message: `${name.slice(0, 256)} ${message}` }]
  })
  return faults.length > 0
    ? Result.fail(faults)
    : Result.succeed(
        Object.fromEntries(Object.entries(written ?? {}).map(([name, value]) => [name.toLowerCase(), value]))
      )
}

const bodyOf = (
  written: Schema.Json | undefined,
  stored: ScheduleSettings | null
): Result.Result<Schema.Json, FieldErrors> => {
  if (written === undefined) return Result.succeed(stored?.body ?? null)
  if (!isStorableJson(written)) return fieldError("body", "must be valid Unicode without NUL")
  return Result.mapBoth(compileScheduledBody(written), {
    onSuccess: () => written,
    onFailure: ({ message, path }) => [
      { path: path === "" ? "body" : `body${path.startsWith("[") ? "" : "."}${path}`, message }
    ]
  })
}

const timesOf = (
  { cron, missed, timezone }: typeof Written.Type,
  stored: ScheduleSettings | null
): Result.Result<Pick<ScheduleSettings, "cron" | "missed" | "timezone">, FieldErrors> => {
  const expression = cron === undefined ? stored?.cron : normalCron(cron)
  if (expression === undefined) return fieldError("cron", "is required, like 0 3 * * *")
  const zone = timezone === null ? "UTC" : (timezone ?? stored?.timezone ?? "UTC")
  const fault = faultOf({ cron: expression, timezone: zone })
  if (fault !== true) return fieldError(fault.includes("time zone") ? "timezone" : "cron", fault)
  return Result.succeed({
    cron: expression,
    timezone: zone,
    missed: missed === null ? "once" : (missed ?? stored?.missed ?? "once")
  })
}

/** The settings after a change: merged by member; `body` and `headers` are replaced as a whole. `stored`: null for a new source. */
export const scheduleSettings = (
  written: Schema.JsonObject | null | undefined,
  stored: ScheduleSettings | null
): Result.Result<ScheduleSettings, FieldErrors> => {
  if (written === undefined && stored !== null) return Result.succeed(stored)
  if (written === undefined || written === null) {
    return fieldError("config.schedule", `is required: the source is of type ${scheduledType}`)
  }
  const judged = judgeBody(Written, written, (given) =>
    Result.map(
      every({
        times: timesOf(given, stored),
        body: bodyOf(given.body, stored),
        headers: headersOf(given.headers, stored)
      }),
      ({ body, headers, times }): ScheduleSettings => ({ ...times, body, headers })
    )
  )
  return Result.mapError(judged, (faults) =>
    faults.map(({ message, path }) => ({ path: path === "" ? "config.schedule" : `config.schedule.${path}`, message }))
  )
}
