import type { Schema } from "effect"
import { readNumber } from "@tidegate/json/ExactNumber"
import { tooMuch } from "../engine/Fault.ts"
import { option, select, text } from "../engine/Fields.ts"
import { array, bool, type Call, int, object, operation, string } from "../engine/Operation.ts"
import { csvLimits, dialects, guessed, rowsOf } from "./Csv.ts"

/** A longer number stays text, because it is more often a key than an amount. */
const numeral = /^-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?$/

const inferred = (cell: string): Schema.Json => {
  const number = numeral.test(cell) ? readNumber(cell) : null
  // A number that would be rounded stays text.
  if (typeof number === "number") return number
  return cell === "true" || cell === "false" ? cell === "true" : cell
}

const isHeader = (rows: ReadonlyArray<ReadonlyArray<string>>): boolean => {
  const [first = []] = rows
  return rows.length > 1 && first.every((cell) => cell.trim() !== "" && !/^[-+]?[\d.,]+$/.test(cell.trim()))
}

/** A name that is not used yet. */
const freeOf = (plain: string, names: ReadonlySet<string>): string => {
  let name = plain
  for (let next = 2; names.has(name); next++) name = `${plain}_${next}`
  return name
}

/** Unique names of the columns. */
const namesOf = (cells: ReadonlyArray<string>, call: Call): ReadonlyArray<string> => {
  const names = new Set<string>()
  for (const [at, cell] of cells.entries()) {
    const plain = cell.trim() === "" ? `item_${at + 1}` : cell.trim()
    const name = freeOf(plain, names)
    if (name !== plain)
      call.warn("DUPLICATE_HEADER_RENAMED", `${plain.slice(0, 40)} is now ${name.slice(0, 44)}`, "csv")
    names.add(name)
  }
  return [...names]
}

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)

export const importCsv = operation({
  key: "utility.import_csv",
  label: "Import CSV",
  description: "The rows of a CSV text as line items",
  fields: {
    csv: text("CSV", { required: true, long: true, bytes: csvLimits.bytes }),
    header: option(select("Header", { auto: "Guess", yes: "The first row", no: "None" }, "auto")),
    dialect: option(
      select(
        "Separator",
        { auto: "Guess", comma: "Comma", semicolon: "Semicolon", tab: "Tab", pipe: "Pipe", single_column: "None" },
        "auto"
      )
    ),
    types: option(select("Values", { text: "Texts", infer: "Numbers and booleans, where they are" }, "text"))
  },
  lines: "reject",
  output: { line_items: array(object), header: bool, row_count: int, dialect: object, csv_text: string },
  warnings: ["DIALECT_GUESSED", "DUPLICATE_HEADER_RENAMED", "RAGGED_ROW"],
  errors: ["FORMATTER_CSV_INVALID"],
  limits: { ...csvLimits, characters: csvLimits.bytes },
  cost: { call: 50, character: 250 },
  sample: {
    inputs: { csv: "name,city\nAda,London\n" },
    options: {},
    output: {
      line_items: [{ name: "Ada", city: "London" }],
      header: true,
      row_count: 1,
      dialect: { name: "comma", delimiter: "," },
      csv_text: "name,city\r\nAda,London\r\n"
    }
  },
  run: ({ csv, dialect, header, types }, call) => {
    const input = csv.startsWith("\ufeff") ? csv.slice(1) : csv
    const { delimiter, name } = dialect === "auto" ? guessed(input) : dialects[dialect]!
    if (dialect === "auto") call.warn("DIALECT_GUESSED", `the separator is ${name}`, "csv")
    const rows = rowsOf(input, delimiter, csvLimits.rows + 2)
    const hasHeader = header === "yes" || (header === "auto" && isHeader(rows))
    const body = hasHeader ? rows.slice(1) : rows
    if (body.length > csvLimits.rows) throw tooMuch("there are too many rows", csvLimits.rows, body.length, "csv")
    const first = rows[0] ?? []
    const names = hasHeader ? namesOf(first, call) : first.map((_, at) => `item_${at + 1}`)
    const taken = new Set(names)
    const widest = body.reduce((most, row) => Math.max(most, row.length), names.length)
    const extras = Array.from({ length: widest - names.length }, (_, at) => freeOf(`extra_${at + 1}`, taken))
    const line_items = body.map((row, at) => {
      if (row.length !== names.length) {
        call.warn("RAGGED_ROW", `row ${at + 1} has ${row.length} cells, not ${names.length}`, "csv")
      }
      const cells = Math.max(row.length, names.length)
      const item: Array<readonly [string, Schema.Json]> = []
      for (let column = 0; column < cells; column++) {
        const cell = row[column] ?? ""
        item.push([names[column] ?? extras[column - names.length]!, types === "infer" ? inferred(cell) : cell])
      }
      return Object.fromEntries(item)
    })
    const csv_text = rows.map((row) => `${row.map(quoted).join(",")}\r\n`).join("")
    return { line_items, header: hasHeader, row_count: body.length, dialect: { name, delimiter }, csv_text }
  }
})
