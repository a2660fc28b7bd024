/** Rows of many scenarios with the same measures, as a table with a line for each scenario and a column for each measure. */
import { styleText } from "node:util"
import { figure, percent, requirement, type Row, verdict } from "./Report.ts"

const text = (row: Row | undefined): string =>
  row === undefined
    ? ""
    : [
        row.reference === null ? figure(row.gateway) : `${figure(row.reference)} → ${figure(row.gateway)}`,
        ...(row.ratio === null || row.required?.of === "value" ? [] : [`(${percent(row.ratio.median)})`]),
        requirement(row),
        verdict(row)
      ]
        .filter((part) => part !== "")
        .join(" ")

const tableOf = (rows: ReadonlyArray<Row>) => {
  const headOf = ({ measure, unit }: Row) => (unit === "" ? measure : `${measure}, ${unit}`)
  const heads = [...new Set(rows.map(headOf))]
  const lines = [...new Set(rows.map(({ scenario }) => scenario))].map((scenario) => {
    const own = rows.filter((row) => row.scenario === scenario)
    return {
      holds: own.every(({ holds }) => holds !== false),
      cells: [scenario, ...heads.map((head) => text(own.find((row) => headOf(row) === head)))]
    }
  })
  return { head: ["Beside", ...heads], lines }
}

/** The table as Markdown. */
export const renderMarkdown = (rows: ReadonlyArray<Row>): string => {
  const { head, lines } = tableOf(rows)
  return [head, head.map((_, at) => (at === 0 ? "---" : "--:")), ...lines.map(({ cells }) => cells)]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n")
}

/** The table for a terminal. A line with a bound that is not met is red if the terminal supports it. */
export const renderText = (rows: ReadonlyArray<Row>): string => {
  const { head, lines } = tableOf(rows)
  const widths = head.map((title, at) => Math.max(title.length, ...lines.map(({ cells }) => cells[at]!.length)))
  const line = (cells: ReadonlyArray<string>): string =>
    cells
      .map((cell, at) => cell.padEnd(widths[at]!))
      .join("  ")
      .trimEnd()
  return [
    line(head),
    ...lines.map(({ cells, holds }) =>
      holds ? line(cells) : styleText("red", line(cells), { stream: process.stdout })
    )
  ].join("\n")
}
