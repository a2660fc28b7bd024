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
