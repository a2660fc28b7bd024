import type { Outcome } from "./Round.ts"

const columns = [
  "round",
  "acked",
  "refused",
  "lost",
  "deliveries",
  "in line",
  "retries",
  "bulk",
  "repeated",
  "unexplained",
  "delivery gap",
  "ack gap",
  "settled",
  "verdict"
] as const

const ms = (value: number): string => `${Math.round(value)} ms`

const cells = ({ fault, figures, findings }: Outcome): ReadonlyArray<string> => [
  fault.name,
  ...(figures === null
    ? Array.from({ length: columns.length - 2 }, () => "-")
    : [
        String(figures.acknowledged),
        String(figures.refused),
        String(figures.lost),
        String(figures.deliveries),
        String(figures.ordered),
        String(figures.retries),
        String(figures.bulk),
        String(figures.repeated),
        String(figures.unexplained),
        ms(figures.deliveryGapMs),
        ms(figures.acknowledgeGapMs),
        ms(figures.settledMs)
      ]),
  findings.isClean ? "ok" : "BROKEN"
]

/** One line per round, and under the table what was broken. */
export const render = (outcomes: ReadonlyArray<Outcome>): string => {
  const rows = [columns, ...outcomes.map(cells)]
  const widths = columns.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  const table = rows.map((row) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!))).join("  ")
  )
  const broken = outcomes
    .filter(({ findings }) => !findings.isClean)
    .flatMap(({ fault, findings }) => ["", `${fault.name}:`].concat(findings.lines.map((line) => `  ${line}`)))
  return [...table, ...broken, ""].join("\n")
}

/** The columns of the table of a long run, each with the share of one outcome in its count. */
const counted: ReadonlyArray<readonly [head: string, share: (outcome: Outcome) => number]> = [
  ["Rounds", () => 1],
  ["Acknowledged", ({ figures }) => figures?.acknowledged ?? 0],
  ["Deliveries", ({ figures }) => figures?.deliveries ?? 0],
  ["In line", ({ figures }) => figures?.ordered ?? 0],
  ["Lost", ({ figures }) => figures?.lost ?? 0],
  ["Doubled", ({ figures }) => figures?.unexplained ?? 0],
  ["Inversions", ({ findings }) => findings.count("events of one key arrive in ingest order")],
  ["Repeated after a crash", ({ figures }) => figures?.repeated ?? 0],
  ["Not carried through", ({ figures }) => (figures === null ? 1 : 0)],
  ["Broken", ({ findings }) => (findings.isClean ? 0 : 1)]
]

/** The median of each part of a round, in ms, as far as rounds had that part. */
const medianParts = (outcomes: ReadonlyArray<Outcome>): string => {
  const times = Map.groupBy(
    outcomes.flatMap(({ figures }) => Object.entries(figures?.parts ?? {})),
    ([name]) => name
  )
  const median = (all: ReadonlyArray<number>): number => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0
  return Array.from(times, ([name, all]) => `${name} ${median(all.map(([, took]) => took))} (${all.length})`).join(", ")
}

/** All rounds of a long run, a line for each kind of fault and the times of the parts of a round, as Markdown. */
export const summarize = (outcomes: ReadonlyArray<Outcome>): string => {
  const heads = ["Fault", ...counted.map(([head]) => head)]
  const groups: ReadonlyArray<readonly [string, ReadonlyArray<Outcome>]> = [
    ...Map.groupBy(outcomes, ({ fault }) => fault.name),
    ["all", outcomes]
  ]
  const sums = (those: ReadonlyArray<Outcome>): ReadonlyArray<string> =>
    counted.map(([, share]) => those.reduce((sum, one) => sum + share(one), 0).toFixed())
  const lines = groups.map(([name, those]) => [name].concat(sums(those)))
  const table = [heads, heads.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |\n`).join("")
  return `${table}\nMedian of the parts, ms (rounds): ${medianParts(outcomes)}\n`
}
