import { describe, expect, it } from "@effect/vitest"
import { Schema } from "effect"
import { type Cell, Counter, Family, Gauge, Histogram } from "../src/Instruments.ts"

const of = <const L extends ReadonlyArray<readonly [string, ReadonlyArray<string> | number]>>(labels: L) =>
  new Family({ name: "n", kind: "counter", help: "h", unit: "1", labels, make: () => new Counter() })

const valueOf = (cell: Cell): number => (cell instanceof Histogram ? cell.count : cell.value)

const labelsOf = (family: { readonly series: () => Iterable<{ readonly labels: object }> }) =>
  [...family.series()].map(({ labels }) => labels)

describe("Histogram", () => {
  it("A histogram counts a value in the first bucket whose bound is not below it", () => {
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

  it.prop("A histogram loses no observed value", [Values], ([values]) => {
    const histogram = new Histogram([0.1, 1, 10])
    for (const value of values) histogram.observe(value)
    const { buckets, count } = histogram.state
    expect(count).toBe(values.length)
    for (const [bound, below] of buckets) expect(below).toBe(values.filter((value) => value <= bound).length)
  })
})

describe("Metric labels", () => {
  it("Label values of a closed list start at zero, and all unknown values share one series", () => {
    const family = of([["outcome", ["ok", "failed"]]])
    expect(labelsOf(family)).toEqual([{ outcome: "ok" }, { outcome: "failed" }])
    family.at("a stranger's word").add()
    family.at("another").add(2)
    expect(family.at("other").value).toBe(3)
    expect(labelsOf(family)).toHaveLength(3)
  })

  const Pairs = Schema.Array(Schema.Tuple([Schema.String, Schema.String]))

  it.prop("A label never has more values than declared", [Pairs], ([pairs]) => {
    const family = of([
      ["open", 3],
      ["closed", ["a", "b"]]
    ])
    for (const [open, closed] of pairs) family.at(open, closed).add()
    const series = [...family.series()]
    expect(series.length).toBeLessThanOrEqual(4 * 3)
    expect(series.reduce((sum, { cell }) => sum + valueOf(cell), 0)).toBe(pairs.length)
  })

  it("Replacing all series of a metric removes the previous ones", () => {
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

it("A gauge can read its value from a function", () => {
  let kept = 1
  const gauge = new Gauge()
  gauge.readBy(() => kept)
  kept = 7
  expect(gauge.state).toEqual({ value: 7 })
})
