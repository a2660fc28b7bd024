/** The table of the rows: a line for each load and version, and one for their ratio. */
import { styleText } from "node:util"
import type { Measurement } from "../Measurement.ts"
import { figure, median, percent } from "../Report.ts"
import type { Load, Row } from "./Row.ts"

export type Version = "before" | "now"

/** The measurements of one version: for each load one phase per round. */
export type Phases = Map<Load, ReadonlyArray<Measurement>>

/** One line. */
export interface Line {
  readonly row: string
  readonly load: string
  readonly version: Version | "ratio"
  /** In the order of the columns. */
  readonly cells: ReadonlyArray<string>
  /** The requirements that were met or not, or why there are no figures. */
  readonly remark: string
  /** Null: there is no requirement. */
  readonly holds: boolean | null
}

interface Column {
  readonly head: string
  readonly figure: (found: Measurement, row: Row) => number
}

const count = ({ delivered, refused }: Measurement, row: Row): number =>
  row.countsRefusals === true ? refused : delivered

const rate = (found: Measurement, { answersAfter = 0, countsRefusals, isFresh }: Row): number => {
  const { acknowledged, delivered, perSecond, refused, sending } = found
  if (countsRefusals === true) return refused / sending
  // With pauses because of a limit, the last delivery does not show how long the work took.
  if (isFresh === true) return acknowledged / sending
  // The target's delay only makes the last answer later, so it is subtracted.
  return delivered / (delivered / perSecond - answersAfter / 1_000)
}

/** CPU seconds per 1,000 are milliseconds each. */
const cpu =
  (part: keyof Measurement["seconds"]): Column["figure"] =>
  (found, row) =>
    (found.seconds[part] / count(found, row)) * 1_000

const cpuOfAll: Column["figure"] = ({ seconds, ...found }, row) =>
  ((seconds.gateway + seconds.sandbox + seconds.postgres) / count({ ...found, seconds }, row)) * 1_000

const latency =
  (of: "p50" | "p99"): Column["figure"] =>
  ({ senderToTarget }, row) =>
    // Events that had to wait before the phase have no latency of their own.
    row.countsRefusals === true || row.waiting !== undefined ? Number.NaN : senderToTarget[of]

const columns: ReadonlyArray<Column> = [
  { head: "events/s", figure: rate },
  { head: "p50, ms", figure: latency("p50") },
  { head: "p99, ms", figure: latency("p99") },
  { head: "CPU s/1,000", figure: cpuOfAll },
  { head: "gateway", figure: cpu("gateway") },
  { head: "sandbox", figure: cpu("sandbox") },
  { head: "PostgreSQL", figure: cpu("postgres") },
  { head: "gateway, MB", figure: ({ megabytes }) => megabytes.gateway },
  { head: "sandbox, MB", figure: ({ megabytes }) => megabytes.sandbox }
]

export const loadName = (load: Load): string =>
  typeof load === "number" ? `${load.toLocaleString("en-US")} requests/s` : load

/** The lines of one row, with medians. `failed`: why a version has no figures, or no more. */
export const linesOf = (
  row: Row,
  versions: ReadonlyArray<Version>,
  found: Readonly<Record<Version, Phases>>,
  failed: ReadonlyMap<Version, { readonly isUnknown: boolean; readonly message: string }>
): ReadonlyArray<Line> =>
  row.loads.flatMap((load) => {
    const at = { row: row.name, load: loadName(load) }
    const phases = (version: Version) => found[version].get(load) ?? []
    const lines = versions.map((version): Line => {
      const failure = failed.get(version)
      const faults = row.must.flatMap(({ fault, name }) => {
        const wrong = phases(version)
          .map(fault)
          .filter((fault) => fault !== null)
        return wrong.length === 0 ? [] : [`${name}: ${wrong.join("; ")}`]
      })
      if (failure !== undefined && !failure.isUnknown) faults.push(failure.message)
      return {
        ...at,
        version,
        cells: columns.map(({ figure: of }) =>
          phases(version).length === 0 ? "" : figure(median(phases(version).map((one) => of(one, row))))
        ),
        remark:
          faults.length > 0
            ? `FAIL: ${faults.join(", ")}`
            : failure !== undefined
              ? `cannot: ${failure.message}`
              : row.must.map(({ name }) => name).join(", "),
        // The earlier version is not judged.
        holds: version === "before" || (failure?.isUnknown ?? false) ? null : faults.length === 0
      }
    })
    const rounds = Math.min(phases("before").length, phases("now").length)
    if (rounds === 0) return lines
    const ratio = ({ figure: of }: Column): number =>
      median(
        phases("now")
          .slice(0, rounds)
          .map((now, round) => of(now, row) / of(phases("before")[round]!, row))
      )
    return [
      ...lines,
      { ...at, version: "ratio", cells: columns.map((column) => percent(ratio(column))), remark: "", holds: null }
    ]
  })

const HEAD = ["Row", "Load", "", ...columns.map(({ head }) => head), "What must come true"]

/** Row and load are named only in their first line. */
const fields = (line: Line, before: Line | undefined): ReadonlyArray<string> => {
  const isSameRow = line.row === before?.row
  const isSameLoad = isSameRow && line.load === before.load
  return [isSameRow ? "" : line.row, isSameLoad ? "" : line.load, line.version, ...line.cells, line.remark]
}

const isText = (at: number): boolean => at < 3 || at === HEAD.length - 1

/** The table as Markdown. */
export const renderMarkdown = (lines: ReadonlyArray<Line>): string =>
  [HEAD, HEAD.map((_, at) => (isText(at) ? "---" : "--:")), ...lines.map((line, at) => fields(line, lines[at - 1]))]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")

/** The table for a terminal, with colour if the terminal supports it. */
export const renderText = (lines: ReadonlyArray<Line>): string => {
  const body = lines.map((line, at) => ({ holds: line.holds, cells: fields(line, lines[at - 1]) }))
  const widths = HEAD.map((head, at) => Math.max(head.length, ...body.map(({ cells }) => cells[at]!.length)))
  const text = (cells: ReadonlyArray<string>): string =>
    cells
      .map((cell, at) => (isText(at) ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!)))
      .join("  ")
      .trimEnd()
  return [
    text(HEAD),
    ...body.map(({ cells, holds }) =>
      holds === false ? styleText("red", text(cells), { stream: process.stdout }) : text(cells)
    )
  ].join("\n")
}
