import { Schema } from "effect"

/** A moment as the interfaces show it: ISO 8601 in UTC with milliseconds. */
export const Timestamp = Schema.String.annotate({
  format: "date-time",
  description: "ISO 8601, UTC, milliseconds",
  examples: ["2026-01-01T00:00:00.000Z"]
})
