import { Context, Effect, type LogLevel } from "effect"
import { Budget } from "./Budget.ts"
import { metrics } from "./Metrics.ts"

/** Ids, outcomes and durations; never headers, bodies, queries or secrets. */
export type Fields = Readonly<Record<string, string | number | boolean | null>>

/**
 * Log lines per second of each kind, for successes and for failures. Strangers can make requests fail as fast as they can send them, so
 * failures are limited, too. Omitted lines are counted, and the next line contains their number.
 */
export const LineLimits = Context.Reference<{ readonly successes: number; readonly failures: number }>(
  "@tidegate/telemetry/LineLimits",
  { defaultValue: () => ({ successes: 10, failures: 200 }) }
)

export type LineKind = "request" | "callback" | "attempt" | "call" | "run" | "workflow_run" | "workflow_step"

/** Runs a log effect in its owner's context. */
type Run = (line: Effect.Effect<void>) => unknown

/** One line with all data about one occurrence. */
export const wideLine = (message: string, fields: Fields, level: LogLevel.Severity = "Info"): Effect.Effect<void> =>
  Effect.annotateLogs(Effect.logWithLevel(level)(message), fields)

/** The lines of a frequent kind of occurrence. Plain code, because it runs for each occurrence. */
export class WideLines {
  readonly #kind: LineKind
  readonly #successes: Budget
  readonly #failures: Budget
  #suppressed = 0

  constructor(kind: LineKind, limits: Context.Service.Shape<typeof LineLimits>) {
    this.#kind = kind
    this.#successes = new Budget(limits.successes)
    this.#failures = new Budget(limits.failures)
  }

  /** `fields` is called only if the line is written. */
  write(run: Run, failed: boolean, nowMs: number, fields: () => Fields): void {
    if (!(failed ? this.#failures : this.#successes).take(nowMs)) {
      if (failed) {
        this.#suppressed++
        metrics.linesSuppressed.at(this.#kind).add()
      }
      return
    }
    const suppressed = failed && this.#suppressed > 0 ? { suppressed: this.#suppressed } : {}
    if (failed) this.#suppressed = 0
    run(wideLine(this.#kind, { ...fields(), ...suppressed }, failed ? "Warn" : "Info"))
  }
}
