/** How the values of placeholders are written into a kind of document. */
export interface Escape {
  /** Escapes a text for the document. */
  readonly text: (text: string) => string
  /** Whether a placeholder outside of a JSON string is replaced by a complete JSON value. */
  readonly values: boolean
}

/**
 * The document stays valid JSON whatever the values are: in `{"id":"{{body.id}}"}` the text is put into the string, in `{"n":{{body.n}}}`
 * the value itself is inserted (a text with quotes, an object, `null` if it is missing).
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

/** Text and attribute values of XML. Characters that XML does not allow, not even escaped, become U+FFFD. */
export const xmlEscape: Escape = {
  text: (text) =>
    text
      .replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
      .replaceAll(/[&<>"']/g, (char) => entities[char] ?? char),
  values: false
}

/** Plain text: unchanged. */
export const textEscape: Escape = { text: (text) => text, values: false }

/** The value of a header. Forbidden characters are removed, because a line break would begin another header. */
export const headerEscape: Escape = {
  text: (text) => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, ""),
  values: false
}
