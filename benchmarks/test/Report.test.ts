import { expect, it } from "@effect/vitest"
import { makeRow, median, renderMarkdown, renderText } from "../src/Report.ts"

const row = (input: Partial<Parameters<typeof makeRow>[0]>) =>
  makeRow({ scenario: "Scenario", measure: "rate", unit: "events/s", gateway: [1], ...input })

it("Median is the middle value, or the mean of the middle two", () => {
  expect(median([9, 1, 5])).toBe(5)
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([])).toBeNaN()
})

it("Benchmark ratios are taken per round, and their median is judged", () => {
  // The machine is twice as fast in the second round: medians of each side would say 75 %.
  const found = row({ reference: [100, 200, 100], gateway: [70, 140, 50], required: { of: "ratio", atLeast: 0.7 } })
  expect(found.ratio).toStrictEqual({ median: 0.7, least: 0.5, greatest: 0.7 })
  expect(found.holds).toBe(true)
})

it("Benchmark limits are inclusive, and a missing value fulfils no requirement", () => {
  expect(row({ gateway: [600], required: { of: "value", atMost: 600 } }).holds).toBe(true)
  expect(row({ gateway: [601], required: { of: "value", atMost: 600 } }).holds).toBe(false)
  expect(row({ gateway: [Number.NaN], required: { of: "value", atMost: 600 } }).holds).toBe(false)
  expect(row({ gateway: [1], required: { of: "ratio", atMost: 2 } }).holds).toBe(false)
  expect(row({}).holds).toBe(null)
})

it("Benchmark table shows value, ratio, requirement and verdict", () => {
  const rows = [
    row({ reference: [6200], gateway: [3100], required: { of: "ratio", atLeast: 0.6 } }),
    row({ measure: "statements", unit: "", gateway: [0.054], required: { of: "value", atMost: 0.1 } })
  ]
  expect(renderMarkdown(rows)).toBe(
    [
      "| Measure | Reference | Gateway | Ratio (least–greatest) | Required | Verdict |",
      "|---|--:|--:|--:|--:|---|",
      "| **Scenario** |  |  |  |  |  |",
      "| rate, events/s | 6,200 | 3,100 | 50 % (50 %–50 %) | ≥ 60 % | FAIL |",
      "| statements |  | 0.054 |  | ≤ 0.1 | pass |"
    ].join("\n")
  )
  expect(renderText(rows)).toContain("FAIL")
})
