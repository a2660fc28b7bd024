import { expect, it } from "vitest"
import { type Figures, render, type Result } from "../rivals/Table.ts"

const figures = (perSecond: number, missing = 0): Figures => ({
  acknowledged: 10,
  refused: 0,
  delivered: 10,
  missing,
  doubled: 0,
  malformed: 0,
  perSecond,
  acknowledgeP50: 1.234,
  acknowledgeP99: 2,
  targetP50: 3,
  targetP99: 4,
  cpuPerThousand: 0.5,
  megabytes: 250,
  othersShare: 0.04
})

const product = (name: string): Result["product"] => ({
  name,
  load: "events",
  answers: "it answers",
  keeps: "it keeps"
})

const measured = (name: string, perSecond: number, missing?: number): Result => ({
  product: product(name),
  outcome: { offered: figures(100), saturated: figures(perSecond, missing) }
})

const rowOf = (table: string, name: string): ReadonlyArray<string> =>
  (table.split("\n").find((line) => line.startsWith(`| ${name}`)) ?? "").split(" | ")

it("The table of rivals shows the median and the extremes of the rounds, and what is missing in all of them", () => {
  const rounds = [measured("one", 3_000, 2), measured("one", 1_000, 1), measured("one", 2_000)]
  const row = rowOf(render(rounds, { events: 100, flow: 20 }), "one")
  expect(row[1]).toBe("2,000 (1,000–3,000)")
  expect(row[2]).toBe("1.23 (1.23–1.23)")
  expect(row[9]).toBe("3")
})

it("The table of rivals says why a product could not be measured, and in how many rounds it failed", () => {
  const broken: Result = { product: product("broken"), outcome: "no\nroom" }
  const half: Result = { product: product("half"), outcome: "gone" }
  const table = render([broken, half, measured("half", 5)], { events: 100, flow: 20 })
  expect(rowOf(table, "broken")[1]).toBe("not measured: no room |")
  expect(rowOf(table, "half")).toEqual(expect.arrayContaining(["| half (failed in 1 rounds)", "5"]))
})
