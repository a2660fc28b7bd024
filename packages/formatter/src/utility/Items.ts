import type { Schema } from "effect"

/** An element of a list as text: an object as its JSON, nothing as nothing. */
export const textOfItem = (item: Schema.Json): string =>
  item === null ? "" : typeof item === "string" ? item : JSON.stringify(item)
