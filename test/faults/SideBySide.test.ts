import { describe, expect, it } from "vitest"
import { allFaults } from "./Faults.ts"
import { drawn, inOrder } from "./SideBySide.ts"

const count = 4 * allFaults.length + 3
const series = drawn(allFaults, { count, series: 2, seed: "a" })
const names = (rounds: (typeof series)[number]) => rounds.map(({ name }) => name)

describe("Rounds of the crash test that are held side by side", () => {
  it("The series have as many rounds together as were asked for, and are equally long", () => {
    expect(series.map(({ length }) => length)).toEqual([2 * allFaults.length + 2, 2 * allFaults.length + 1])
  })

  it("Each turn of a series has every kind once, and keeps a world until it has served all kinds of its topology", () => {
    for (const rounds of series) {
      for (const begin of [0, allFaults.length]) {
        const turn = rounds.slice(begin, begin + allFaults.length)
        expect(names(turn).toSorted()).toEqual(names(allFaults).toSorted())
        const worlds = turn.filter(({ topology }, index) => turn[index - 1]?.topology !== topology)
        expect(worlds.length).toBe(new Set(allFaults.map(({ topology }) => topology)).size)
      }
    }
  })

  it("Each series and each turn has an order of its own, which its seed gives again", () => {
    const turns = series.flatMap((rounds) => [
      names(rounds.slice(0, allFaults.length)).join(),
      names(rounds.slice(allFaults.length, 2 * allFaults.length)).join()
    ])
    expect(new Set(turns).size).toBe(4)
    expect(drawn(allFaults, { count, series: 2, seed: "a" }).map(names)).toEqual(series.map(names))
    expect(drawn(allFaults, { count, series: 2, seed: "b" }).map(names)).not.toEqual(series.map(names))
  })

  it("No kinds that can be held make no rounds", () => {
    expect(drawn([], { count, series: 2, seed: "a" })).toEqual([[], []])
    expect(inOrder([], 0)).toEqual([])
  })
})
