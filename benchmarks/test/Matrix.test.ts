import { expect, it } from "@effect/vitest"
import { renderMarkdown, renderText } from "../src/Matrix.ts"
import { makeRow } from "../src/Report.ts"

const p50 = { measure: "p50", unit: "ms" }
const rows = [
  makeRow({ scenario: "exports", ...p50, reference: [4], gateway: [5], required: { of: "ratio", atMost: 1.25 } }),
  makeRow({ scenario: "exports", measure: "refused", unit: "", gateway: [3], required: { of: "value", atMost: 0 } }),
  makeRow({ scenario: "searches", ...p50, reference: [4], gateway: [6] })
]

it("Matrix has a line for each scenario and a column for each measure, with bound and verdict in each cell", () => {
  expect(renderMarkdown(rows)).toBe(
    [
      "| Beside | p50, ms | refused |",
      "| --- | --: | --: |",
      "| exports | 4 → 5 (125 %) ≤ 125 % pass | 3 ≤ 0 FAIL |",
      "| searches | 4 → 6 (150 %) |  |"
    ].join("\n")
  )
  expect(renderText(rows).split("\n")).toHaveLength(3)
})
