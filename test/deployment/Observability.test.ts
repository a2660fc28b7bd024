import { execFile, spawnSync } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { instruments } from "../../packages/telemetry/src/Metrics.ts"
import { selectorsOf, type Selector } from "../support/Promql.ts"

/** Rules and dashboards are only data. A metric or label that the gateway does not have makes an alarm that never comes, and an empty panel. */

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string): string => readFileSync(`${root}/${path}`, "utf8")

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly runbook: string }
}

interface Panel {
  readonly title: string
  readonly targets: ReadonlyArray<{ readonly expr: string; readonly legendFormat: string }>
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly templating: { readonly list: ReadonlyArray<{ readonly name: string; readonly query: string }> }
  readonly panels: ReadonlyArray<Panel>
}

const { groups } = parse(read("infra/observability/rules.yaml")) as {
  readonly groups: ReadonlyArray<{ readonly rules: ReadonlyArray<Rule> }>
}
const rules = groups.flatMap(({ rules }) => rules)
const dashboards = globSync("infra/observability/dashboards/*.json", { cwd: root })
  .toSorted()
  .map((path) => JSON.parse(read(path)) as Dashboard)

/** Labels that Prometheus itself adds to every series. */
const added = ["job", "instance"]

/** The labels of a series, with their values if these are a closed list; null: the gateway does not have it. */
const labelsOf = (series: string): ReadonlyMap<string, ReadonlyArray<string> | null> | null => {
  const own = added.map((name) => [name, null] as const)
  if (series === "up") return new Map(own)
  const isOf = (name: string, kind: string): boolean =>
    kind === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`].includes(series) : name === series
  const instrument = instruments.find(({ kind, name }) => isOf(name, kind))
  if (instrument === undefined) return null
  const declared = instrument.labels.map(
    ([name, values]) => [name, typeof values === "number" ? null : values] as const
  )
  const bounds = series.endsWith("_bucket") ? ([["le", null]] as const) : []
  return new Map<string, ReadonlyArray<string> | null>([...own, ...declared, ...bounds])
}

/** What is wrong with a selector, in words. */
const faultsOf = ({ grouping, matchers, metric }: Selector): ReadonlyArray<string> => {
  const labels = labelsOf(metric)
  if (labels === null) return [`no metric ${metric}`]
  return [
    ...[...grouping, ...matchers.map(({ label }) => label)]
      .filter((label) => !labels.has(label))
      .map((label) => `${metric} has no label ${label}`),
    ...matchers.flatMap(({ label, value }) =>
      value
        .split("|")
        .filter((one) => labels.get(label)?.includes(one) === false)
        .map((one) => `${metric} never has ${label}="${one}"`)
    ),
    ...(matchers.some(({ label }) => label === "job") ? [] : [`${metric} of any job`])
  ]
}

/** Labels that the results of a query still have. */
const keptBy = (selectors: ReadonlyArray<Selector>): ReadonlySet<string> =>
  new Set(
    selectors.flatMap(({ grouping, isGrouped, metric }) =>
      isGrouped ? grouping : [...(labelsOf(metric)?.keys() ?? [])]
    )
  )

const missing = (named: Iterable<RegExpExecArray>, selectors: ReadonlyArray<Selector>): ReadonlyArray<string> =>
  [...named].map(([, label]) => label!).filter((label) => !keptBy(selectors).has(label))

/** A query as Prometheus gets it: Grafana replaces its variables before. */
const filledIn = (query: string, { templating }: Dashboard): string =>
  templating.list.reduce(
    (text, { name }) => text.replaceAll(`$${name}`, "any"),
    query.replaceAll("$__rate_interval", "5m")
  )

describe("Alarms", () => {
  it("There are ten alarms, each with a name of its own", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(10)
    expect(rules.length).toBe(10)
  })

  it.for(rules)(
    "Alarm $alert reads metrics, labels and values that the gateway has",
    ({ annotations, expr, labels }) => {
      const selectors = selectorsOf(expr)
      expect(selectors.length).toBeGreaterThan(0)
      expect(selectors.flatMap(faultsOf)).toEqual([])
      expect(missing(annotations.summary.matchAll(/\$labels\.(\w+)/g), selectors)).toEqual([])
      expect(["page", "ticket"]).toContain(labels.severity)
    }
  )
})

interface AlarmTest {
  readonly name: string
  readonly input_series: ReadonlyArray<{ readonly series: string }>
  readonly alert_rule_test: ReadonlyArray<{ readonly alertname: string; readonly exp_alerts?: ReadonlyArray<unknown> }>
}

/** The tool of Prometheus that runs tests of alarms. Not every machine has it. */
const promtool = spawnSync("promtool", ["--version"]).status === 0

describe("Tests of alarms", () => {
  const { tests } = parse(read("infra/observability/rules.test.yaml")) as { readonly tests: ReadonlyArray<AlarmTest> }
  const looks = tests.flatMap(({ alert_rule_test }) => alert_rule_test)

  it.for(tests)("Series of the test “$name” are ones that the gateway has", ({ input_series }) => {
    const selectors = input_series.flatMap(({ series }) => selectorsOf(series))
    const foreign = ({ matchers }: Selector) => matchers.some(({ value }) => value === "other")
    expect(selectors.filter((one) => !foreign(one)).flatMap(faultsOf)).toEqual([])
  })

  it.for(rules)("Alarm $alert is seen to come, and not to come", ({ alert }) => {
    const own = looks.filter(({ alertname }) => alertname === alert)
    expect(own.some(({ exp_alerts = [] }) => exp_alerts.length > 0)).toBe(true)
    expect(own.some(({ exp_alerts = [] }) => exp_alerts.length === 0)).toBe(true)
  })

  it.runIf(promtool)("Prometheus raises each alarm when it should, and not before", async () => {
    const args = ["test", "rules", "rules.test.yaml"]
    const { stdout } = await promisify(execFile)("promtool", args, { cwd: `${root}/infra/observability` })
    expect(stdout).toContain("SUCCESS")
  })
})

describe("Dashboards", () => {
  it("There are four dashboards, each with a name of its own", () => {
    expect(dashboards.map(({ uid }) => uid).toSorted()).toEqual([
      "tidegate-cluster",
      "tidegate-delivery",
      "tidegate-overview",
      "tidegate-workflows"
    ])
  })

  it.for(dashboards)("Panels of $title read metrics, labels and values that the gateway has", (dashboard) => {
    expect(new Set(dashboard.panels.map(({ title }) => title)).size).toBe(dashboard.panels.length)
    for (const { targets, title } of dashboard.panels) {
      expect(targets.length).toBeGreaterThan(0)
      for (const { expr, legendFormat } of targets) {
        const selectors = selectorsOf(filledIn(expr, dashboard))
        expect(selectors.length).toBeGreaterThan(0)
        const faults = [
          ...selectors.flatMap(faultsOf),
          ...missing(legendFormat.matchAll(/\{\{(\w+)\}\}/g), selectors).map((label) => `the legend's ${label} is gone`)
        ]
        expect({ title, faults }).toEqual({ title, faults: [] })
      }
    }
  })

  it.for(dashboards)("Choices of $title are labels that the gateway has", (dashboard) => {
    const choices = dashboard.templating.list.flatMap(({ query }) => {
      const [, of, label] = /^label_values\((.+), (\w+)\)$/.exec(query) ?? []
      return of === undefined ? [] : [{ of, label: label! }]
    })
    expect(choices.length).toBeGreaterThan(0)
    for (const { label, of } of choices)
      expect(selectorsOf(filledIn(of, dashboard)).map(({ metric }) => labelsOf(metric)?.has(label))).toEqual([true])
  })

  it("Alarms that panels name exist", () => {
    const named = dashboards.flatMap((dashboard) => Array.from(JSON.stringify(dashboard).matchAll(/alarm (\w+)/g)))
    expect(named.length).toBeGreaterThan(2)
    for (const [, name] of named) expect(rules.map(({ alert }) => alert)).toContain(name)
  })
})

describe("What checks alarms and dashboards", () => {
  it.each([
    ['tidegate_nothing{job="tidegate"}', "no metric tidegate_nothing"],
    ['sum by (city) (tidegate_shards_held{job="tidegate"})', "tidegate_shards_held has no label city"],
    ['tidegate_events_total{job="a", outcome="LOST"}', 'tidegate_events_total never has outcome="LOST"'],
    ['tidegate_request_seconds{job="a"}', "no metric tidegate_request_seconds"],
    ["tidegate_shards_held", "tidegate_shards_held of any job"]
  ])("Query %s is refused", (query, fault) => {
    expect(selectorsOf(query).flatMap(faultsOf)).toEqual([fault])
  })

  it("A query that is not PromQL is refused", () => {
    expect(() => selectorsOf("sum(rate(up[5m])")).toThrow(/Not valid PromQL/)
    expect(() => selectorsOf('{__name__="up"}')).toThrow(/names no metric/)
  })
})
