import { expect } from "vitest"
import { it } from "../support/it.ts"
import { runChanges } from "./ChangeRun.ts"

it("a change that has returned holds for every request sent after it, on both processes", async ({ running }) => {
  const gateways = await running({ a: "all", b: "all" })
  const report = await runChanges(gateways, 60)
  expect(report.violations).toEqual([])
  expect(report.decided).toBeGreaterThan(50)
  expect(report.attempts).toBeGreaterThan(20)
})
