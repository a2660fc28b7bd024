/** The table: each measured value with its reference, its requirement, and whether that is met. */
import { styleText } from "node:util"

/** A bound for the gateway's figure itself, or for its ratio to the reference. */
export interface Requirement {
  readonly of: "ratio" | "value"
  readonly atLeast?: number
  readonly atMost?: number
}

/** One line of the table. */
export interface Row {
  readonly scenario: string
  readonly measure: string
  readonly unit: string
  /** Median of the reference's figures; null: there is no reference. */
  readonly reference: number | null
  /** Median of the gateway's figures. */
  readonly gateway: number
  /**
   * Median, minimum and maximum of the ratios gateway / reference of all rounds. Each round compares phases that are close in
   * time.
   */
  readonly ratio: { readonly median: number; readonly least: number; readonly greatest: number } | null
  readonly required: Requirement | null
  /** Whether the requirement is met; null: there is none. */
  readonly holds: boolean | null
}

/** The median of figures; NaN if there are none. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

/** Growth by the hour: the slope of the line through all points. */
export const slope = (points: ReadonlyArray<readonly [hours: number, value: number]>): number => {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean(([hours]) => hours), mean(([, value]) => value)]
  const squares = points.reduce((sum, [hours]) => sum + (hours - x) ** 2, 0)
  return points.reduce((sum, [hours, value]) => sum + (hours - x) * (value - y), 0) / squares
}

const holds = (required: Requirement | undefined, value: number, ratio: number | undefined): boolean | null => {
  if (required === undefined) return null
  const figure = required.of === "value" ? value : (ratio ?? Number.NaN)
  // A figure that could not be measured (NaN) fails every bound.
  return figure >= (required.atLeast ?? -Infinity) && figure <= (required.atMost ?? Infinity)
}

/** Makes a row from one figure per round. `reference`, if given, has as many figures as `gateway`. */
export const makeRow = (input: {
  readonly scenario: string
  readonly measure: string
  readonly unit: string
  readonly reference?: ReadonlyArray<number>
  readonly gateway: ReadonlyArray<number>
  readonly required?: Requirement
}): Row => {
  const ratios = input.reference?.map((reference, round) => input.gateway[round]! / reference)
  const value = median(input.gateway)
  const ratio = ratios && {
    median: median(ratios),
    least: Math.min(...ratios),
    greatest: Math.max(...ratios)
  }
  return {
    scenario: input.scenario,
    measure: input.measure,
    unit: input.unit,
    reference: input.reference ? median(input.reference) : null,
    gateway: value,
    ratio: ratio ?? null,
    required: input.required ?? null,
    holds: holds(input.required, value, ratio?.median)
  }
}

/** A figure in the format of the table. */
export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return "–"
  if (Number.isInteger(value)) return value.toLocaleString("en-US")
  const size = Math.abs(value)
  return size >= 1000 ? Math.round(value).toLocaleString("en-US") : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 3)
}

/** A ratio in the format of the table. */
export const percent = (ratio: number): string => (Number.isFinite(ratio) ? `${Math.round(ratio * 100)} %` : "–")

/** The bound of a row as text; empty: there is none. */
export const requirement = ({ required, unit }: Row): string => {
  if (required === null) return ""
  const [sign, bound] = required.atLeast === undefined ? ["≤", required.atMost] : ["≥", required.atLeast]
  return `${sign} ${required.of === "ratio" ? percent(bound ?? 0) : `${bound?.toLocaleString("en-US")} ${unit}`.trim()}`
}

/** Whether the row's bound is met, as text; empty: there is none. */
export const verdict = (row: Row): string => (row.holds === null ? "" : row.holds ? "pass" : "FAIL")

const cells = (row: Row): ReadonlyArray<string> => [
  `${row.measure}${row.unit === "" ? "" : `, ${row.unit}`}`,
  row.reference === null ? "" : figure(row.reference),
  figure(row.gateway),
  row.ratio === null ? "" : `${percent(row.ratio.median)} (${percent(row.ratio.least)}–${percent(row.ratio.greatest)})`,
  requirement(row),
  verdict(row)
]

const HEAD = ["Measure", "Reference", "Gateway", "Ratio (least–greatest)", "Required", "Verdict"]

/** The lines of all rows. A line with the name of the scenario precedes the first row of each. */
const grouped = (
  rows: ReadonlyArray<Row>,
  title: (scenario: string) => ReadonlyArray<string>,
  line: (row: Row) => string
): ReadonlyArray<string> =>
  rows.flatMap((row, at) =>
    row.scenario === rows[at - 1]?.scenario ? [line(row)] : title(row.scenario).concat(line(row))
  )

/** The table as Markdown. */
export const renderMarkdown = (rows: ReadonlyArray<Row>): string => {
  const line = (fields: ReadonlyArray<string>) => `| ${fields.join(" | ")} |`
  const body = grouped(
    rows,
    (scenario) => [line([`**${scenario}**`, "", "", "", "", ""])],
    (row) => line(cells(row))
  )
  return [line(HEAD), "|---|--:|--:|--:|--:|---|", ...body].join("\n")
}

/** The table for a terminal, with colour if the terminal supports it. */
export const renderText = (rows: ReadonlyArray<Row>): string => {
  const widths = HEAD.map((head, at) => Math.max(head.length, ...rows.map((row) => cells(row)[at]!.length)))
  const line = (fields: ReadonlyArray<string>) =>
    fields
      .map((field, at) =>
        at === 0 || at === HEAD.length - 1 ? field.padEnd(widths[at]!) : field.padStart(widths[at]!)
      )
      .join("  ")
      .trimEnd()
  const paint = (row: Row) => {
    const text = line(cells(row))
    return row.holds === null ? text : styleText(row.holds ? "green" : "red", text, { stream: process.stdout })
  }
  const body = grouped(rows, (scenario) => ["", styleText("bold", scenario, { stream: process.stdout })], paint)
  return [line(HEAD), ...body].join("\n")
}
