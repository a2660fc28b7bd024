import { Result } from "effect"
import { compile, type Context, type Failure, type Outcome, run } from "../src/Formatter.ts"

/** A time that does not go on: what is stopped by it, is stopped by nothing else. */
export const still = () => 0

export const context: Context = {
  anchor: Date.parse("2026-01-15T12:30:00.000Z"),
  timezone: "UTC",
  seed: "test",
  clock: still
}

/** Compiles and runs a step: its outcome, or why there is none. */
export const tryOut = (
  operation: string,
  inputs: Readonly<Record<string, unknown>>,
  options: Readonly<Record<string, unknown>> = {},
  within: Partial<Context> = {}
): Result.Result<Outcome, Failure> =>
  Result.flatMap(compile({ operation, options }), (step) => run(step, inputs, { ...context, ...within }))

/** The same where it gives a value: the output, and the codes of its warnings. */
export const outcomeOf = (...args: Parameters<typeof tryOut>) => {
  const tried = tryOut(...args)
  if (Result.isFailure(tried)) return { failed: tried.failure.code }
  const { output, warnings } = tried.success
  return { output, warnings: warnings.map(({ code }) => code) }
}

/** A case of an operation: what it is given, and what must come of it; a text is the code that it fails with. */
export interface Case {
  readonly inputs: Readonly<Record<string, unknown>>
  readonly options?: Readonly<Record<string, unknown>>
  readonly output: Readonly<Record<string, unknown>> | string
  /** Codes of the expected warnings, in order (default: none). */
  readonly warnings?: ReadonlyArray<string>
}

/** A case of an operation whose input is `input` and whose output is `result`. */
export const one = (
  input: unknown,
  result: unknown,
  inputs: Readonly<Record<string, unknown>> = {},
  options: Readonly<Record<string, unknown>> = {},
  warnings: ReadonlyArray<string> = []
): Case => ({ inputs: { input, ...inputs }, options, output: { result }, warnings })

/** A case that fails. */
export const bad = (
  input: unknown,
  code: string,
  inputs: Readonly<Record<string, unknown>> = {},
  options: Readonly<Record<string, unknown>> = {}
): Case => ({ inputs: { input, ...inputs }, options, output: `FORMATTER_${code}` })

export type Cases = Readonly<Record<string, ReadonlyArray<Case>>>
