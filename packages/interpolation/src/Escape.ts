/** How what a placeholder stands for is written into a document of some kind. */
export interface Escape {
  /** Text as it stands in such a document. */
  readonly text: (text: string) => string
  /** Whether a placeholder that stands outside of a JSON string is replaced by a whole JSON value. */
  readonly values: boolean
}

/**
 * JSON stays JSON whatever the values: in `{"id":"{{body.id}}"}` the text goes into the string, in `{"n":{{body.n}}}` the
 * value itself stands there (a text with quotes, an object, `null` for what is missing).
 */
export const jsonEscape: Escape = {
  text: (text) => JSON.stringify(text).slice(1, -1),
  values: true
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

/** Text and attribute values of XML. What no XML document can hold, not even escaped, becomes U+FFFD. */
export const xmlEscape: Escape = {
  text: (text) =>
    text
      .replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
      .replaceAll(/[&<>"']/g, (char) => entities[char] ?? char),
  values: false
}

/** Plain text: as it is. */
export const textEscape: Escape = { text: (text) => text, values: false }

/** The value of a header, where a line break would begin another one: what may not stand there is left out. */
export const headerEscape: Escape = {
  text: (text) => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, ""),
  values: false
}
