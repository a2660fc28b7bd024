import { Schema, SchemaTransformation } from "effect"
import type { DeliveryItem } from "./DeliveryItem.ts"

/** Events just committed, on their way to their destination's actor. */
export class Batch {
  readonly items: ReadonlyArray<DeliveryItem>
  /** There are more that are not in it: the destination finds them in SQL. */
  readonly more: boolean
  constructor(items: ReadonlyArray<DeliveryItem>, more = false) {
    this.items = items
    this.more = more
  }
}

/**
 * A batch is given to an actor of its own process, as it is. Between processes events travel in a `Handover`; a batch whose actor has
 * just gone to another one tells that one only that there is something to be read.
 */
export const DeliveryBatch = Schema.instanceOf(Batch).pipe(
  Schema.encodeTo(
    Schema.Boolean,
    SchemaTransformation.transform({
      decode: (more: boolean) => new Batch([], more),
      encode: ({ items, more }: Batch) => more || items.length > 0
    })
  )
)
