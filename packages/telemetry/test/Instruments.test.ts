import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Cell, Counter, Family, Gauge, Histogram } from "../src/Instruments.ts"

const of = <const L extends ReadonlyArray<readonly [string, ReadonlyArray<string> | number]>>(labels: L) =>
  new Family({ name: "n", kind: "counter", help: "h", unit: "1", labels, make: () => new Counter() })

const valueOf = (cell: Cell): number => (cell instanceof Histogram ? cell.count : cell.value)

const told = (family: { readonly series: () => Iterable<{ readonly labels: object }> }) =>
  [...family.series()].map(({ labels }) => labels)

describe("a histogram", () => {
  it("counts a value in the first bucket that it is not above", () => {
    const histogram = new Histogram([1, 2.5])
    for (const value of [0, 1, 1.01, 2.5, 3]) histogram.observe(value)
    expect(histogram.state).toEqual({
      buckets: [
        [1, 2],
        [2.5, 4]
      ],
      count: 5,
      sum: 7.51,
      min: 0,
      max: 3
    })
  })

  const Values = Schema.Array(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 100 })))

  it.prop("has lost nothing, whatever it was told", [Values], ([values]) => {
    const histogram = new Histogram([0.1, 1, 10])
    for (const value of values) histogram.observe(value)
    const { buckets, count } = histogram.state
    expect(count).toBe(values.length)
    for (const [bound, below] of buckets) expect(below).toBe(values.filter((value) => value <= bound).length)
  })
})

describe("labels", () => {
  it("of a closed list begin with zero, and have one place for everything else", () => {
    const family = of([["outcome", ["ok", "failed"]]])
    expect(told(family)).toEqual([{ outcome: "ok" }, { outcome: "failed" }])
    family.at("a stranger's word").add()
    family.at("another").add(2)
    expect(family.at("other").value).toBe(3)
    expect(told(family)).toHaveLength(3)
  })

  const Pairs = Schema.Array(Schema.Tuple([Schema.String, Schema.String]))

  it.prop("are never more than declared, whatever comes", [Pairs], ([pairs]) => {
    const family = of([
      ["open", 3],
      ["closed", ["a", "b"]]
    ])
    for (const [open, closed] of pairs) family.at(open, closed).add()
    const series = [...family.series()]
    expect(series.length).toBeLessThanOrEqual(4 * 3)
    expect(series.reduce((sum, { cell }) => sum + valueOf(cell), 0)).toBe(pairs.length)
  })

  it("that are replaced as a whole leave nothing of what was", () => {
    const family = new Family({
      name: "n",
      kind: "gauge",
      help: "h",
      unit: "1",
      labels: [["of", 2]],
      make: () => new Gauge()
    })
    family.replace([
      [["a"], 1],
      [["b"], 2]
    ])
    family.replace([
      [["b"], 3],
      [["c"], 4],
      [["other"], 9]
    ])
    expect([...family.series()].map(({ cell, labels }) => [labels["of"], valueOf(cell)])).toEqual([
      ["b", 3],
      ["c", 4],
      ["other", 9]
    ])
  })
})

it("a value may be somebody else's", () => {
  let kept = 1
  const gauge = new Gauge()
  gauge.readBy(() => kept)
  kept = 7
  expect(gauge.state).toEqual({ value: 7 })
})
