import { describe, expect, it } from "@effect/vitest"
import { readNumber } from "@tidegate/json/ExactNumber"
import { priorityOf } from "../../src/triggers/Priority.ts"

describe("Priority of a run", () => {
  it("A whole number is a priority, as its text is, and one beyond the range counts as its end", () => {
    const cases: ReadonlyArray<readonly [unknown, number]> = [
      [7, 7],
      [-100, -100],
      [-0, 0],
      [101, 100],
      [-5_000, -100],
      ["12", 12],
      ["-3", -3],
      ["007", 7],
      [readNumber("12345678901234567891"), 100],
      [readNumber("-1e400"), -100]
    ]
    // A zero with a sign would be another value in a comparison of orders.
    for (const [value, priority] of cases) expect(priorityOf(value, 55) + 0, String(value)).toBe(priority + 0)
  })

  it("What is not a whole number counts as the default", () => {
    const exact = readNumber("0.1000000000000000055")
    for (const value of [
      undefined,
      null,
      true,
      1.5,
      exact,
      "",
      "1.5",
      "1e2",
      " 1",
      "+1",
      "high",
      "9".repeat(33),
      [1],
      { a: 1 }
    ]) {
      expect(priorityOf(value, 5), JSON.stringify(value)).toBe(5)
    }
  })
})
