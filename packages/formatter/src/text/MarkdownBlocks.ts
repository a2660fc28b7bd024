/** Divides Markdown into pieces that can be parsed one after the other. */

/** The start of a list item, which may continue the list before it. */
const item = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/

/** A blank line; other white space counts as text. */
const blank = /^[ \t]*$/

const fence = /^( {0,3})(`{3,}|~{3,})/

/**
 * The pieces of a document, each with at least `least` characters. A piece begins after an empty line, at a line that continues nothing before
 * it. The pieces mean the same as the whole, except for link definitions, which apply across pieces.
 */
export const piecesOf = (markdown: string, least: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let from = 0
  let isBlank = true
  /** The mark that ends the open code block. */
  let open: string | null = null
  /** False after indented code, which may belong to a list and end with it: from there on the start of a block is uncertain. */
  let isSure = true
  for (let at = 0; at < markdown.length;) {
    const end = markdown.indexOf("\n", at)
    const next = end < 0 ? markdown.length : end + 1
    const line = markdown.slice(at, end < 0 ? markdown.length : end)
    if (isSure && isBlank && open === null && at - from >= least && /^\S/.test(line) && !item.test(line)) {
      pieces.push(markdown.slice(from, at))
      from = at
    }
    const [, indent = "", marks] = fence.exec(line) ?? []
    if (open !== null) {
      if (marks?.startsWith(open) === true && blank.test(line.slice(indent.length + marks.length))) open = null
    } else if (marks !== undefined) {
      if (indent !== "") isSure = false
      // After three backticks, another backtick on the line makes it a code span.
      else if (marks.startsWith("~") || !line.slice(marks.length).includes("`")) open = marks
    }
    isBlank = blank.test(line)
    at = next
  }
  return [...pieces, markdown.slice(from)]
}
