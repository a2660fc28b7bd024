import type { Product } from "./products.ts"

/** One phase of one product. Times are milliseconds; CPU is seconds for 1,000 deliveries. */
export interface Figures {
  readonly acknowledged: number
  readonly refused: number
  readonly delivered: number
  readonly missing: number
  readonly doubled: number
  readonly malformed: number
  readonly perSecond: number
  readonly acknowledgeP50: number
  readonly acknowledgeP99: number
  readonly targetP50: number
  readonly targetP99: number
  readonly cpuPerThousand: number
  readonly megabytes: number
  /** The share of the machine that other processes took. */
  readonly othersShare: number
}

export interface Result {
  readonly product: Pick<Product, "name" | "load" | "answers" | "keeps">
  /** A text: why it could not be measured. */
  readonly outcome: { readonly offered: Figures; readonly saturated: Figures } | string
}

const median = (sorted: ReadonlyArray<number>): number => {
  const middle = sorted.length / 2
  return (sorted[Math.floor(middle - 0.5)]! + sorted[Math.floor(middle)]!) / 2
}

const short = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(3)))

/** The median of the rounds, and their extremes. */
const spread = (all: ReadonlyArray<number>): string => {
  const sorted = all.toSorted((a, b) => a - b)
  const middle = short(median(sorted))
  return sorted.length === 1 ? middle : `${middle} (${short(sorted[0]!)}–${short(sorted.at(-1)!)})`
}

const heads = (perSecond: number, what: string) => [
  "Product",
  `end to end, saturated, ${what}/s`,
  `${perSecond}/s: acknowledge p50, ms`,
  "p99",
  `${perSecond}/s: to the target p50, ms`,
  "p99",
  `CPU s for 1,000 at ${perSecond}/s`,
  "CPU s for 1,000, saturated",
  "memory, MB",
  "missing",
  "doubled",
  "refused",
  "others took"
]

const row = (name: string, results: ReadonlyArray<Result>): ReadonlyArray<string> => {
  const measured = results.flatMap(({ outcome }) => (typeof outcome === "string" ? [] : [outcome]))
  const failed = results.flatMap(({ outcome }) => (typeof outcome === "string" ? [outcome] : []))
  if (measured.length === 0) return [name, `not measured: ${failed[0]!.replaceAll(/[|\n]/g, " ").slice(0, 300)}`]
  const offered = (of: keyof Figures): string => spread(measured.map((one) => one.offered[of]))
  const saturated = (of: keyof Figures): string => spread(measured.map((one) => one.saturated[of]))
  const sum = (of: "missing" | "doubled" | "refused"): string =>
    String(measured.reduce((all, one) => all + one.offered[of] + one.saturated[of], 0))
  const others = measured.flatMap((one) => [one.offered.othersShare, one.saturated.othersShare])
  return [
    `${name}${failed.length > 0 ? ` (failed in ${failed.length} rounds)` : ""}`,
    saturated("perSecond"),
    offered("acknowledgeP50"),
    offered("acknowledgeP99"),
    offered("targetP50"),
    offered("targetP99"),
    offered("cpuPerThousand"),
    saturated("cpuPerThousand"),
    saturated("megabytes"),
    sum("missing"),
    sum("doubled"),
    sum("refused"),
    `${Math.round(Math.min(...others) * 100)}–${Math.round(Math.max(...others) * 100)} %`
  ]
}

const line = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |\n`

/** A table for each load, and what each product promises. */
export const render = (
  results: ReadonlyArray<Result>,
  perSecond: Readonly<Record<Product["load"], number>>
): string => {
  const tables = (["events", "flow"] as const).flatMap((load) => {
    const those = Map.groupBy(
      results.filter(({ product }) => product.load === load),
      ({ product }) => product.name
    )
    if (those.size === 0) return []
    const head = heads(perSecond[load], load === "events" ? "events" : "runs")
    const rows = [...those].map(([name, all]) => row(name, all))
    return [[head, head.map(() => "---"), ...rows].map(line).join("")]
  })
  const promises = new Map(results.map(({ product }) => [product.name, product]))
  const about = [...promises.values()].map(({ answers, keeps, name }) => [name, answers, keeps])
  const columns = ["Product", "When it answers", "What it keeps"]
  return [...tables, [columns, columns.map(() => "---"), ...about].map(line).join("")].join("\n")
}
