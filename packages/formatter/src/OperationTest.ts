import { Result, Schema } from "effect"
import * as Characters from "@tidegate/model/Characters"
import { formatterCodes } from "@tidegate/model/FormatterCode"
import { compileMapping, contextRoots } from "@tidegate/interpolation/Mapping"
import { bound, judgedAsWritten, shownAt, unbound } from "./Binding.ts"
import { Fault } from "./engine/Fault.ts"
import type { Warning } from "./engine/Field.ts"
import { limits } from "./engine/Limits.ts"
import { narrowed } from "./engine/Narrow.ts"
import type { DataVersions } from "./Versions.ts"
import { compile, type Context, engineVersion, type Failure, inParts, type Outcome, type Step } from "./Formatter.ts"

/** Tests a step: its inputs are templates, and the body contains the sample data for them. Nothing is stored. */

/** The body is not a valid test. */
export interface TestInvalid {
  readonly code: "FORMATTER_ENVELOPE_INVALID" | "FORMATTER_ANCHOR_INVALID"
  readonly fields: ReadonlyArray<{ readonly path: string; readonly message: string }>
}

export interface TestAnswer {
  readonly operation: string
  readonly engine_version: string
  readonly resolved_input: Schema.JsonObject
  readonly output: Schema.JsonObject
  readonly output_schema: Schema.JsonObject
  readonly warnings: ReadonlyArray<Warning>
  readonly line_items: Outcome["lineItems"]
  readonly anchor_at: string
  readonly data_versions: DataVersions
}

export interface TestFailure extends Failure {
  readonly operation: string
  readonly engine_version: string
  readonly resolved_input: Schema.JsonObject | null
}

const objectOf = Schema.is(Schema.Record(Schema.String, Schema.Unknown))

interface Envelope {
  readonly operation: string
  readonly version: string | undefined
  readonly options: Readonly<Record<string, unknown>>
  readonly inputs: Readonly<Record<string, unknown>>
  readonly sample: Readonly<Record<string, unknown>>
  readonly anchor: number
  readonly timezone: string
  readonly seed: string
}

const isoMoment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/i

const firstAnchor = Date.UTC(1900, 0, 1)
const lastAnchor = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Milliseconds of an RFC 3339 time within the allowed years; null if it is invalid. */
const anchorOf = (text: string): number | null => {
  if (!isoMoment.test(text)) return null
  try {
    // `Date.parse` would accept 30 February as 2 March.
    const millis = Temporal.Instant.from(text).epochMilliseconds
    return millis < firstAnchor || millis > lastAnchor ? null : millis
  } catch {
    return null
  }
}

const member = (body: object, name: string): unknown =>
  Object.hasOwn(body, name) ? (body as Readonly<Record<string, unknown>>)[name] : undefined

const envelopeOf = (body: unknown, now: number): Result.Result<Envelope, TestInvalid> => {
  const invalid = (path: string, message: string): Result.Result<never, TestInvalid> =>
    Result.fail({ code: "FORMATTER_ENVELOPE_INVALID", fields: [{ path, message }] })
  if (!objectOf(body)) return invalid("body", "must be a JSON object")
  const config = member(body, "config")
  if (!objectOf(config)) return invalid("config", "must be an object")
  const operation = member(config, "operation")
  if (typeof operation !== "string") return invalid("config.operation", "must be a text")
  const version = member(config, "engine_version")
  if (version !== undefined && typeof version !== "string") return invalid("config.engine_version", "must be a text")
  const options = member(config, "options") ?? {}
  if (!objectOf(options)) return invalid("config.options", "must be an object")
  const inputs = member(body, "inputs") ?? {}
  if (!objectOf(inputs)) return invalid("inputs", "must be an object")
  const sample = member(body, "context") ?? {}
  if (!objectOf(sample)) return invalid("context", "must be an object")
  const timezone = member(body, "timezone") ?? "UTC"
  if (typeof timezone !== "string") return invalid("timezone", "must be a text")
  const seed = member(body, "seed") ?? "test"
  if (typeof seed !== "string" || !Characters.isUpTo(seed, 200))
    return invalid("seed", "must be a text of at most 200 characters")
  const anchored = member(body, "anchor_at") ?? null
  const anchor = anchored === null ? now : typeof anchored === "string" ? anchorOf(anchored) : null
  if (anchor === null) {
    const message = "must be a time with its offset, like 2026-01-01T00:00:00.000Z, of the years 1900 to 9999"
    return Result.fail({ code: "FORMATTER_ANCHOR_INVALID", fields: [{ path: "anchor_at", message }] })
  }
  return Result.succeed({ operation, version, options, inputs, sample, anchor, timezone, seed })
}

interface Resolved {
  readonly inputs: Schema.JsonObject
  /** The inputs in which a template found no value. */
  readonly missing: ReadonlyArray<string>
}

/** Resolves the templates of the inputs. */
const resolveInputs = (
  { operation }: Step,
  inputs: Readonly<Record<string, unknown>>,
  sample: Readonly<Record<string, unknown>>
): Resolved => {
  const written = Result.flatMap(judgedAsWritten(operation, inputs), () => bound(operation, inputs))
  if (Result.isFailure(written)) throw written.failure
  const mapping = compileMapping(written.success, contextRoots)
  if (Result.isFailure(mapping)) {
    const { message, path } = mapping.failure
    throw new Fault("FORMATTER_TEMPLATE_INVALID", message, { field: shownAt(operation, path) })
  }
  const resolved = mapping.success.resolve(sample)
  if (resolved.kind === "too_large") throw new Fault("FORMATTER_LIMIT_EXCEEDED", "the inputs become too large")
  return {
    inputs: unbound(operation, resolved.value as Schema.JsonObject),
    missing: [...new Set(resolved.missing.map((path) => shownAt(operation, path)))]
  }
}

const missingAt = (field: string): Warning => ({
  code: "TEMPLATE_VALUE_MISSING",
  field,
  line_item_index: null,
  message: "a template stands for nothing"
})

/** Runs the test in a body. Resumable; `clock` returns milliseconds of processor time. */
export function* testOperation(
  body: unknown,
  { clock, now, versions }: { readonly clock: () => number; readonly now: number; readonly versions: DataVersions }
): Generator<void, Result.Result<TestAnswer, TestInvalid | TestFailure>, void> {
  const read = envelopeOf(body, now)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const { anchor, inputs, operation, options, sample, seed, timezone, version } = read.success
  const failed = (failure: Failure, engine_version: string, resolved_input: Schema.JsonObject | null) =>
    Result.fail({ ...failure, operation: operation.slice(0, 100), engine_version, resolved_input })
  const compiled = compile({ operation, engine_version: version, options })
  if (Result.isFailure(compiled)) return failed(compiled.failure, (version ?? engineVersion).slice(0, 100), null)
  const step = compiled.success
  let resolved: Resolved
  try {
    resolved = resolveInputs(step, inputs, sample)
  } catch (cause) {
    if (!(cause instanceof Fault)) throw cause
    const { code, details, message } = cause
    const { stage } = formatterCodes[code]
    return failed({ code, stage, message, details }, step.version, null)
  }
  const context: Context = { anchor, timezone, seed, clock }
  const ran = yield* inParts(step, resolved.inputs, context)
  if (Result.isFailure(ran)) return failed(ran.failure, step.version, resolved.inputs)
  const { lineItems, output, warnings } = ran.success
  return Result.succeed({
    operation,
    engine_version: step.version,
    resolved_input: resolved.inputs,
    output,
    output_schema: narrowed(step.operation.output, output, lineItems.applied),
    warnings: [...resolved.missing.map(missingAt), ...warnings].slice(0, limits.warnings + 1),
    line_items: lineItems,
    anchor_at: new Date(anchor).toISOString(),
    data_versions: versions
  })
}
