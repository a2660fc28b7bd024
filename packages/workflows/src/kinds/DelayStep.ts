import { DateTime, Option, Schema } from "effect"
import type { Json } from "@tidegate/model/Rule"
import { limits } from "../Limits.ts"
import { objectOf } from "../OutputNames.ts"
import { type Evaluate, type Evaluation, noInputs, type Outcome, type Resumable, stepKind } from "../StepKind.ts"

const units = { seconds: 1_000, minutes: 60_000, hours: 3_600_000, days: 86_400_000, weeks: 604_800_000 } as const

const failed = (code: string, message: string): Outcome => ({ kind: "failed", error: { code, message } })

const iso = (at: number): string => new Date(at).toISOString()

/** Waits until `until`, or not at all when that is not in the future. */
const wait = (until: number, now: number): Outcome => {
  if (until - now > limits.longestDelay) return failed("DELAY_TOO_LONG", "the wait is longer than 31 days")
  if (until <= now) {
    return { kind: "succeeded", output: { scheduled_for: iso(until), released_at: iso(now) }, ports: ["out"] }
  }
  return { kind: "waits", until, output: { scheduled_for: iso(until) } }
}

/** Waits for a duration, or until a time. Nothing stays in memory meanwhile. */
export const delayKind = stepKind({
  kind: "delay",
  config: Schema.Struct({
    mode: Schema.Literals(["for", "until"]),
    amount: Schema.optionalKey(
      Schema.Union([Schema.Finite, Schema.String]).annotate({
        description: "How long to wait, in `unit`; a number, or a template that gives one"
      })
    ),
    unit: Schema.optionalKey(Schema.Literals(["seconds", "minutes", "hours", "days", "weeks"])),
    /** A time in ISO 8601, or a template for one; in `timezone` when it has no offset. */
    until: Schema.optionalKey(Schema.String),
    timezone: Schema.optionalKey(Schema.String),
    past: Schema.optionalKey(Schema.Literals(["continue", "fail"]))
  }),
  settings: [],
  resource: null,
  callsAction: false,
  notTaken: "path_not_taken",
  inline: true,
  inputs: noInputs,
  output: objectOf("scheduled_for", "released_at"),
  ports: ["out"],
  portRequired: false,
  *compile(_, config, compiler): Resumable<Evaluate> {
    const { amount, mode, past, timezone, unit, until } = config
    const strange = mode === "for" ? { until, timezone, past } : { amount, unit }
    for (const [member, value] of Object.entries(strange)) {
      if (value !== undefined) {
        compiler.issue("STEP_CONFIG_INVALID", `config.${member}`, `has no effect where the mode is ${mode}`)
      }
    }
    if (mode === "for") {
      if (amount === undefined) compiler.issue("STEP_CONFIG_INVALID", "config.amount", "is required")
      if (unit === undefined) compiler.issue("STEP_CONFIG_INVALID", "config.unit", "is required")
      if (amount === undefined || unit === undefined) return null
      const fixed =
        typeof amount === "string" && amount.includes("{{") ? 0 : Number(amount === "" ? Number.NaN : amount)
      if (!(fixed >= 0 && fixed * units[unit] <= limits.longestDelay)) {
        compiler.issue("STEP_CONFIG_INVALID", "config.amount", "is between nothing and 31 days")
      }
      const read = yield* compiler.mapping(amount, "config.amount")
      return read === null
        ? null
        : (evaluation) => waitFor(valueOf(read.resolve(contextOf(evaluation))), units[unit], evaluation.time.now)
    }
    if (until === undefined) {
      compiler.issue("STEP_CONFIG_INVALID", "config.until", "is required")
      return null
    }
    const zone = Option.getOrNull(DateTime.zoneMakeNamed(timezone ?? "UTC"))
    if (zone === null) {
      compiler.issue("STEP_CONFIG_INVALID", "config.timezone", "is the name of a time zone like Europe/Berlin")
      return null
    }
    if (!until.includes("{{") && timeOf(until, zone) === null) {
      compiler.issue("STEP_CONFIG_INVALID", "config.until", "is a time in ISO 8601 or a template")
    }
    const read = yield* compiler.mapping(until, "config.until")
    if (read === null) return null
    return (evaluation) => {
      const given = valueOf(read.resolve(contextOf(evaluation)))
      const at = timeOf(given, zone)
      if (at === null) {
        return failed(given === null ? "INPUT_REQUIRED" : "INPUT_INVALID", "until did not give a time in ISO 8601")
      }
      if (at < evaluation.time.now && past === "fail") return failed("DELAY_IN_PAST", "the time has passed")
      return wait(at, evaluation.time.now)
    }
  }
})

const waitFor = (amount: Json, unit: number, now: number): Outcome => {
  const number = typeof amount === "string" && amount.trim() !== "" ? Number(amount) : amount
  if (typeof number !== "number" || !Number.isFinite(number)) {
    return failed(amount === null ? "INPUT_REQUIRED" : "INPUT_INVALID", "amount did not give a number")
  }
  return wait(now + Math.max(0, Math.round(number * unit)), now)
}

const contextOf = ({ context }: Evaluation): Readonly<Record<string, unknown>> =>
  context as unknown as Readonly<Record<string, unknown>>

const valueOf = (resolved: { readonly kind: string; readonly value?: Json }): Json => resolved.value ?? null

const isoTime = /^\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?<offset>[Zz]|[+-]\d\d:?\d\d)?)?$/

/** Unix ms; null when it is no time. A local time that a zone skips is interpreted with the offset before the gap. */
const timeOf = (written: Json, zone: DateTime.TimeZone): number | null => {
  if (typeof written !== "string") return null
  const text = written.trim()
  const found = isoTime.exec(text)
  if (found === null) return null
  if (found.groups?.["offset"] !== undefined) {
    const at = Date.parse(text.toUpperCase().replace(" ", "T"))
    return Number.isNaN(at) ? null : at
  }
  const local = `${text.toUpperCase().replace(" ", "T")}${text.length === 10 ? "T00:00" : ""}Z`
  const zoned = DateTime.makeZoned(local, { timeZone: zone, adjustForTimeZone: true })
  return Option.match(zoned, { onNone: () => null, onSome: DateTime.toEpochMillis })
}
