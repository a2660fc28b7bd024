import { Fault, tooMuch } from "../engine/Fault.ts"

export const csvLimits = { bytes: 150_000, rows: 1000, columns: 100, field_bytes: 65_536 } as const

export interface Dialect {
  readonly name: string
  /** Null: each line is one cell. */
  readonly delimiter: string | null
}

export const dialects: Readonly<Record<string, Dialect>> = {
  comma: { name: "comma", delimiter: "," },
  semicolon: { name: "semicolon", delimiter: ";" },
  tab: { name: "tab", delimiter: "\t" },
  pipe: { name: "pipe", delimiter: "|" },
  single_column: { name: "single_column", delimiter: null }
}

/**
 * The rows of a CSV text, by RFC 4180. Invalid text is read as spreadsheets and Python do: a quote is an ordinary character in a cell that does not
 * begin with one, and so are characters after a closing quote. Each character is read once, and reading stops at the limits.
 */
export const rowsOf = (
  text: string,
  delimiter: string | null,
  maxRows: number = csvLimits.rows + 1
): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<ReadonlyArray<string>> = []
  let row: Array<string> = []
  let cell = ""
  let from = 0
  /** Index of the open quote; -1: none. */
  let open = -1
  /** Whether the cell was quoted: then an empty cell counts. */
  let hadQuotes = false
  const endCell = (to: number): void => {
    cell += text.slice(from, to)
    if (cell.length > csvLimits.field_bytes)
      throw tooMuch("a cell is too long", csvLimits.field_bytes, cell.length, "csv")
    row.push(cell)
    if (row.length > csvLimits.columns)
      throw tooMuch("there are too many columns", csvLimits.columns, row.length, "csv")
    cell = ""
    hadQuotes = false
  }
  const endRow = (to: number): void => {
    if (row.length > 0 || to > from || hadQuotes) {
      endCell(to)
      rows.push(row)
      row = []
    }
  }
  for (let at = 0; at < text.length && rows.length < maxRows; at++) {
    const char = text[at]!
    if (open >= 0) {
      if (char !== '"') continue
      cell += text.slice(from, at)
      if (text[at + 1] === '"') {
        at++
        from = at
      } else {
        open = -1
        from = at + 1
      }
    } else if (char === '"' && at === from && !hadQuotes && delimiter !== null) {
      open = at
      hadQuotes = true
      from = at + 1
    } else if (char === delimiter) {
      endCell(at)
      from = at + 1
    } else if (char === "\n" || char === "\r") {
      endRow(at)
      if (char === "\r" && text[at + 1] === "\n") at++
      from = at + 1
    }
  }
  if (open >= 0) throw new Fault("FORMATTER_CSV_INVALID", "a quote is not closed", { field: "csv", position: open })
  if (rows.length < maxRows) endRow(text.length)
  return rows
}

/** Characters that the detection reads. */
const looked = 8192

/** Detects the separator: the one that occurs equally often in each of the first rows, outside of quotes. */
export const guessed = (text: string): Dialect => {
  const counts = new Map<string, Array<number>>([",", ";", "\t", "|"].map((delimiter) => [delimiter, [0]]))
  let quoted = false
  let rows = 1
  let isEmpty = true
  for (const char of text.slice(0, looked)) {
    if (char === '"') quoted = !quoted
    if (quoted) continue
    if (char === "\n" || char === "\r") {
      if (isEmpty) continue
      if (++rows > 10) break
      isEmpty = true
      for (const row of counts.values()) row.push(0)
    } else {
      isEmpty = false
      const row = counts.get(char)
      if (row !== undefined) row[row.length - 1]!++
    }
  }
  let best: Dialect = dialects["single_column"]!
  let score = 0
  for (const dialect of Object.values(dialects)) {
    const all = dialect.delimiter === null ? [] : counts.get(dialect.delimiter)!
    // The last row may be incomplete or missing.
    const whole = all.length > 1 && (isEmpty || text.length > looked) ? all.slice(0, -1) : all
    const [first = 0] = whole
    const alike = whole.filter((count) => count === first).length / whole.length
    const worth = first === 0 ? 0 : alike * 1000 + first
    if (worth > score) [best, score] = [dialect, worth]
  }
  return best
}
