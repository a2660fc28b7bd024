/** Escapes text for Markdown, so that text which looks like a tag, an entity or a mark is not rendered as one. */

/** Marks within a line. `<` before white space and `&` without a name need no escape; `!` may precede a link, and `#` may end a heading. */
const marks = /[\\`*_[\]]|<(?!\s)|&(?=#?\w)|~(?=~)|(?<=~)~|!$|(?<=\s)#(?=#*\s*$)/g

/** Characters at the start of a line that would make it a heading, a list, a quotation, a table or a rule. */
const beginnings = /^([ \t]*)([-=>|]|:(?=-)|\+(?=\s|$)|#+(?=\s|$)|\d{1,9}(?=[.)](?:\s|$)))/gm

export const markdownText = (text: string): string =>
  text
    .replaceAll(marks, "\\$&")
    .replaceAll(beginnings, (_, space: string, found: string) =>
      /^\d/.test(found) ? `${space}${found}\\` : `${space}\\${found}`
    )

/** Prepares an address for the HTML that the converter reads. The converter itself escapes parentheses and angle brackets. */
export const markdownAddress = (address: string): string =>
  address
    .trim()
    .replaceAll(/\s/g, "%20")
    .replaceAll(/[`\\]/g, encodeURIComponent)
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")

/** Prepares a title for the HTML that the converter reads, which will quote it: one line, with escaped backslashes and entities. */
export const markdownTitle = (title: string): string =>
  title
    .slice(0, 1000)
    .replaceAll(/\s+/g, " ")
    .trim()
    .replaceAll("\\", "\\\\")
    .replaceAll(/&(?=#?\w+;)/g, "&amp;")
