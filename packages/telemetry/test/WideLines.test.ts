import { expect, it } from "@effect/vitest"
import { Effect, Logger, Result } from "effect"
import { describe } from "vitest"
import { fault } from "../src/Faults.ts"
import { metrics } from "../src/Metrics.ts"
import { type Fields, WideLines } from "../src/WideLines.ts"

/** Lines as they were written: level, message, and what they are about. */
const written = (use: (run: (line: Effect.Effect<void>) => void) => void): ReadonlyArray<unknown> => {
  const found: Array<unknown> = []
  const logger = Logger.map(Logger.formatStructured, ({ annotations, level, message }) => {
    found.push([level, message, annotations])
  })
  use((line) => Effect.runSync(Effect.provide(line, Logger.layer([logger]))))
  return found
}

describe("Event log lines", () => {
  it("Log lines have their fields, and suppressed lines are counted without computing their fields", () => {
    const lines = new WideLines("request", { successes: 2, failures: 1 })
    const before = metrics.linesSuppressed.at("request").value
    let asked = 0
    const fields = (): Fields => ({ request_id: `req_${++asked}` })
    const found = written((run) => {
      for (let i = 0; i < 5; i++) lines.write(run, false, 1_000, fields)
      for (let i = 0; i < 3; i++) lines.write(run, true, 1_500, fields)
      lines.write(run, true, 2_000, fields)
    })
    expect(found).toEqual([
      ["INFO", "request", { request_id: "req_1" }],
      ["INFO", "request", { request_id: "req_2" }],
      ["WARN", "request", { request_id: "req_3" }],
      ["WARN", "request", { request_id: "req_4", suppressed: 2 }]
    ])
    expect(asked).toBe(4)
    expect(metrics.linesSuppressed.at("request").value - before).toBe(2)
  })
})

it.effect("A fault has the same id in its answer and in the log, and its cause is only in the log", () =>
  Effect.gen(function* () {
    const found: Array<{ readonly text: string; readonly annotations: Record<string, unknown> }> = []
    const logger = Logger.map(Logger.formatStructured, (line) => {
      found.push({ text: JSON.stringify(line), annotations: line.annotations })
    })
    const about = {
      code: "INTERNAL_ERROR",
      message: "it did not work",
      log: "the reason",
      cause: "a secret cause"
    } as const
    const error = yield* Effect.provide(fault(about), Logger.layer([logger]))
    expect(error).toMatchObject({ code: "INTERNAL_ERROR", message: "it did not work" })
    expect(found).toHaveLength(1)
    expect(error.data).toEqual({ error_id: found[0]!.annotations["error_id"] })
    expect(found[0]!.text).toContain("a secret cause")
    expect(JSON.stringify(error)).not.toContain("secret")
    const other = yield* Effect.result(Effect.flip(Effect.flip(fault(about))))
    expect(Result.getOrThrow(other).data).not.toEqual(error.data)
  })
)
