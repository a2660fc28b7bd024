import { expect } from "vitest"
import { it } from "../support/it.ts"
import { runChanges } from "./ChangeRun.ts"

it("A committed change applies to every later request on both processes", async ({ running }) => {
  const gateways = await running({ a: "all", b: "all" })
  const report = await runChanges(gateways, 60)
  expect(report.violations).toEqual([])
  expect(report.decided).toBeGreaterThan(50)
  expect(report.attempts).toBeGreaterThan(20)
})
