/** Escapes text for Markdown, so that text which looks like a tag, an entity or a mark is not rendered as one. */

/** Marks within a line. `<` before white space begins nothing, nor does `&` that no name stands behind. */
const marks = /[\\`*_[\]]|<(?!\s)|&(?=#?\w)|~(?=~)|(?<=~)~/g

/** What makes a heading, a list, a quotation, a table or a rule of a line that begins with it. */
const beginning = /^([-=>|]|:(?=-)|\+(?=\s|$)|#+(?=\s|$)|\d{1,9}(?=[.)](?:\s|$)))/

export const markdownText = (text: string): string => text.replaceAll(marks, "\\$&")

/** Escaped text that a line begins with. */
export const markdownLine = (escaped: string): string =>
  escaped.replace(beginning, (found) => (/^\d/.test(found) ? `${found}\\` : `\\${found}`))

/** An address between parentheses: none of its characters ends it. */
export const markdownAddress = (address: string): string =>
  address
    .trim()
    .replaceAll(/\s/g, "%20")
    .replaceAll(/[\p{Cc}`\\]/gu, encodeURIComponent)
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")
    .replaceAll(/[<>()]/g, "\\$&")

/** A title behind an address, in quotes: a line, whose backslashes and entities are text. Empty if there is none. */
export const markdownTitle = (title: string): string => {
  const line = title
    .slice(0, 1000)
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll(/[\\"]/g, "\\$&")
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")
  return line === "" ? "" : ` "${line}"`
}

/** A code span: its marks are longer than those in the code, or shorter. */
export const markdownCode = (code: string): string => {
  const runs = new Set(code.match(/`+/g)?.map(({ length }) => length))
  let length = 1
  while (runs.has(length)) length++
  const mark = "`".repeat(length)
  const space = code.startsWith("`") || code.endsWith("`") ? " " : ""
  return mark + space + code + space + mark
}

/** The lines of a block of code: no line of the code ends it. */
export const markdownFence = (code: string, language: string): ReadonlyArray<string> => {
  let length = 3
  for (const [, ticks] of code.matchAll(/^ {0,3}(`{3,})/gm)) length = Math.max(length, ticks!.length + 1)
  const fence = "`".repeat(length)
  return [fence + language, ...code.split("\n"), fence]
}
