import type { IsSecretName } from "./SecretNames.ts"

/** Masks columns with secret names in text tables (CSV and similar). */

/** Longest head line, and maximum number of columns. */
const longestHead = 4_096
const maxColumns = 1_000
/** Rows between two yields. */
const rowsAtOnce = 256

const separators = [",", ";", "\t", "|"] as const

/** A cell as it is written, with its quotes, and its end: a separator, the end of the row, or the end of the text. */
interface Cell {
  readonly to: number
  readonly ends: boolean
}

const cellAt = (text: string, from: number, separator: string): Cell => {
  let at = from
  if (text[at] === '"') {
    at++
    // A quoted cell without an end reaches to the end of the text: rather too much is masked than too little.
    for (; at < text.length; at++) {
      if (text[at] !== '"') continue
      if (text[at + 1] !== '"') break
      at++
    }
    at = Math.min(at + 1, text.length)
  }
  while (at < text.length && text[at] !== separator && text[at] !== "\n" && text[at] !== "\r") at++
  return { to: at, ends: text[at] !== separator }
}

/** Lines before the head: blank ones, and the one that tells a spreadsheet program the separator. */
const beforeHead = /^(?:[ \t\ufeff]*\r?\n|\ufeff?sep=.\r?\n){0,100}/

const nameOf = (written: string): string => written.trim().replaceAll('"', "")

/** Indexes of the secret columns, by the first line of a table; null if it is no table, or has none. */
const secretColumns = (
  text: string,
  isSecret: IsSecretName
): { readonly separator: string; readonly columns: ReadonlySet<number>; readonly end: number } | null => {
  const start = beforeHead.exec(text.slice(0, longestHead))?.[0].length ?? 0
  const end = text.indexOf("\n", start)
  if (end < 0 || end - start > longestHead) return null
  const head = text.slice(start, end).replace(/\r$/, "")
  for (const separator of separators) {
    if (!head.includes(separator)) continue
    const columns = new Set<number>()
    let from = 0
    for (let column = 0; column < maxColumns; column++) {
      const { ends, to } = cellAt(head, from, separator)
      const name = nameOf(head.slice(from, to))
      // A column name is a word or two. A longer text is a sentence, so the line is no head.
      if (name.length > 64) return null
      if (isSecret(name)) columns.add(column)
      if (ends) break
      from = to + 1
    }
    if (columns.size > 0) return { separator, columns, end }
  }
  return null
}

/** The table with its secret columns masked; null if it is no table, or has no such column. */
export function* secretColumnsRemoved(
  text: string,
  isSecret: IsSecretName,
  mask: string
): Generator<void, string | null, void> {
  const found = secretColumns(text, isSecret)
  if (found === null) return null
  const { columns, end, separator } = found
  let at = end + 1
  const pieces = [text.slice(0, at)]
  let column = 0
  let kept = at
  let rows = 0
  while (at < text.length) {
    const { ends, to } = cellAt(text, at, separator)
    if (columns.has(column) && to > at) {
      pieces.push(text.slice(kept, at), mask)
      kept = to
    }
    if (!ends) {
      column++
      at = to + 1
      continue
    }
    column = 0
    at = to
    while (at < text.length && (text[at] === "\r" || text[at] === "\n")) at++
    if (++rows % rowsAtOnce === 0) yield
  }
  pieces.push(text.slice(kept))
  return pieces.join("")
}
