import type { Schema } from "effect"

/** An element of a list as text: an object as JSON, null as empty text. */
export const textOfItem = (item: Schema.Json): string =>
  item === null ? "" : typeof item === "string" ? item : JSON.stringify(item)
