import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { parseExposition, sampleValue } from "../../../test/support/Exposition.ts"
import { exposition } from "../src/Exposition.ts"
import type { Instrument } from "../src/Instruments.ts"
import { instruments, metrics } from "../src/Metrics.ts"

const units = { s: "seconds", By: "bytes", "1": "" } as const

/** Names by which other programs know what every process has. */
const conventional = /^(?:process|nodejs)_/

const labelsOf = ({ labels }: Instrument): string =>
  labels
    .map(([name, values]) => `\`${name}\` (${typeof values === "number" ? `${values} and other` : values.length})`)
    .join(", ")

describe("Metrics", () => {
  it.each(instruments.map((one) => [one.name, one] as const))("Metric %s follows Prometheus naming", (name, one) => {
    expect(name).toMatch(/^(?:tidegate|process|nodejs)(?:_[a-z0-9]+)+$/)
    expect(one.help).toMatch(/^[A-Z].*\.$/)
    const base = name.replace(/_total$/, "")
    expect(name.endsWith("_total")).toBe(one.kind === "counter")
    if (one.unit !== "1") expect(base).toMatch(new RegExp(`_${units[one.unit]}$`))
    else if (!conventional.test(name)) expect(base).not.toMatch(/_(?:seconds|bytes|ms)$/)
    for (const [label] of one.labels) expect(label).toMatch(/^[a-z]+$/)
  })

  it("Metric names are unique", () => {
    expect(new Set(instruments.map(({ name }) => name)).size).toBe(instruments.length)
  })

  it("All metrics together have fewer than 2,000 series", () => {
    const most = ({ labels }: Instrument): number =>
      labels.reduce((product, [, values]) => product * ((typeof values === "number" ? values : values.length) + 1), 1)
    expect(instruments.reduce((sum, one) => sum + most(one), 0)).toBeLessThan(2_000)
  })

  it("Metrics are exposed as they are declared", () => {
    const error = 'a "quoted"\\\nvalue'
    const valuesOf = (exposed: ReturnType<typeof parseExposition>) => [
      sampleValue(exposed, "tidegate_attempts_total", { error }),
      sampleValue(exposed, "tidegate_journal_commit_seconds_bucket", { kind: "accept", le: "0.0025" }),
      sampleValue(exposed, "tidegate_journal_commit_seconds_bucket", { kind: "accept", le: "0.005" })
    ]
    // Other suites of the worker may have counted.
    const before = valuesOf(parseExposition(exposition()))
    metrics.attempts.at(error).add()
    metrics.commitSeconds.at("accept").observe(0.003)
    const exposed = parseExposition(exposition())
    for (const one of instruments) {
      const { help, kind, name } = one
      // What has no series yet is not there yet.
      if ([...one.series()].length === 0) continue
      expect(exposed.get(name)).toMatchObject({ type: kind, help })
    }
    const [attempts, quicker, slower] = valuesOf(exposed).map((value, at) => value! - (before[at] ?? 0))
    expect(attempts).toBe(1)
    expect(quicker).toBe(0)
    expect(slower).toBe(1)
  })

  it("The metrics page describes every metric as it is declared", () => {
    const page = readFileSync(new URL("../../../docs/metrics.md", import.meta.url), "utf8")
    const described = [...page.matchAll(/^\| `([a-z_0-9]+)` *\| (\w+) *\| (.*?) *\| (.*?) *\|$/gm)].map((row) =>
      row.slice(1)
    )
    const declared = instruments.map((one) => [one.name, one.kind, labelsOf(one), one.help])
    // To write the table anew: TIDEGATE_METRICS_TABLE=1 prints it.
    if (process.env["TIDEGATE_METRICS_TABLE"] !== undefined) {
      for (const [name, ...rest] of declared) process.stdout.write(`| \`${name}\` | ${rest.join(" | ")} |\n`)
    }
    expect(described).toEqual(declared)
  })
})
