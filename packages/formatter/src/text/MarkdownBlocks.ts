/** Markdown in pieces that can be read one after the other. */

/** What begins an item of a list: it may go on with the list before it. */
const item = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/

/** Other white space is text. */
const blank = /^[ \t]*$/

const fence = /^( {0,3})(`{3,}|~{3,})/

/**
 * The pieces of a document, of at least so many characters: each begins at a line behind an empty one that nothing before it can go on with. They say the
 * same as the whole, but for the links that they define for each other.
 */
export const piecesOf = (markdown: string, least: number): ReadonlyArray<string> => {
  const pieces: Array<string> = []
  let from = 0
  let isBlank = true
  /** What ends the code that the line stands in. */
  let open: string | null = null
  /** Code that is indented may be of a list, and end with it: from there on no line is sure. */
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
      // Behind three backticks, another one is a code span.
      else if (marks.startsWith("~") || !line.slice(marks.length).includes("`")) open = marks
    }
    isBlank = blank.test(line)
    at = next
  }
  return [...pieces, markdown.slice(from)]
}
