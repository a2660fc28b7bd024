/** Text as Markdown says it: without this, text that has the shape of a tag, an entity or a mark would become one where the Markdown is rendered. */

/** Marks within a line. `<` before white space begins nothing, nor does `&` that no name stands behind; `!` may stand before a link, `#` end a heading. */
const marks = /[\\`*_[\]]|<(?!\s)|&(?=#?\w)|~(?=~)|(?<=~)~|!$|(?<=\s)#(?=#*\s*$)/g

/** What makes a heading, a list, a quotation, a table or a rule of a line that begins with it. */
const beginnings = /^([ \t]*)([-=>|]|:(?=-)|\+(?=\s|$)|#+(?=\s|$)|\d{1,9}(?=[.)](?:\s|$)))/gm

export const markdownText = (text: string): string =>
  text
    .replaceAll(marks, "\\$&")
    .replaceAll(beginnings, (_, space: string, found: string) =>
      /^\d/.test(found) ? `${space}${found}\\` : `${space}\\${found}`
    )

/** An address as it stands in HTML for the converter, which writes parentheses and angles so that they end nothing. */
export const markdownAddress = (address: string): string =>
  address
    .trim()
    .replaceAll(/\s/g, "%20")
    .replaceAll(/[`\\]/g, encodeURIComponent)
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")

/** A title as it stands in HTML for the converter, which quotes it: a line, whose backslashes and entities are text. */
export const markdownTitle = (title: string): string =>
  title
    .slice(0, 1000)
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll("\\", "\\\\")
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")
