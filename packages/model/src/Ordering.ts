import { Schema } from "effect"

/**
 * What happens to the other events of an ordering key when one has failed and will be retried: "block": they wait; "skip": they
 * go on.
 */
export const OnFailure = Schema.Literals(["block", "skip"])

/** Events with the same value at `key` are delivered one after the other, in the order in which they were received. */
export const Ordering = Schema.Struct({
  /** A path into body, headers or query. */
  key: Schema.String,
  on_failure: OnFailure
})

export type Ordering = typeof Ordering.Type
