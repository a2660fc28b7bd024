import { Schema, SchemaTransformation } from "effect"
import type { PendingRequest } from "./PendingRequest.ts"

/**
 * Requests just committed, on their way to the connection whose slow rules they wait for. On the same runner they are handed over as
 * they are; across the network it is only told that there are some, and the connection reads them from SQL.
 */
export class Batch {
  readonly requests: ReadonlyArray<PendingRequest>
  /** There are more that did not travel. */
  readonly more: boolean
  constructor(requests: ReadonlyArray<PendingRequest>, more = false) {
    this.requests = requests
    this.more = more
  }
}

export const RouteBatch = Schema.instanceOf(Batch).pipe(
  Schema.encodeTo(
    Schema.Null,
    SchemaTransformation.transform({ decode: () => new Batch([], true), encode: () => null })
  )
)
