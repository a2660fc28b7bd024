import { Schema } from "effect"

/** What becomes of an event's place in its key's line when it has failed and will be tried again: kept, or given up. */
export const OnFailure = Schema.Literals(["block", "skip"])

/** Events with one value at `key` are delivered one at a time, in the order in which they came. */
export const Ordering = Schema.Struct({
  /** A path into body, headers or query. */
  key: Schema.String,
  on_failure: OnFailure
})

export type Ordering = typeof Ordering.Type
