import { Schema, SchemaTransformation } from "effect"

/** Rows that were just committed, on their way to their actor. */
export class Batch<Item> {
  readonly items: ReadonlyArray<Item>
  /** There are more rows than the batch has: the actor reads them from SQL. */
  readonly more: boolean
  constructor(items: ReadonlyArray<Item>, more = false) {
    this.items = items
    this.more = more
  }
}

/**
 * A batch is given unchanged to an actor of its own process. When the actor is on another runner, the batch crosses the network
 * empty and only says that there is something to read. (Events for another runner travel in a `Handover`.)
 */
export const batchOf = <Item>() =>
  Schema.instanceOf(Batch<Item>).pipe(
    Schema.encodeTo(
      Schema.Boolean,
      SchemaTransformation.transform({
        decode: (more: boolean) => new Batch<Item>([], more),
        encode: ({ items, more }: Batch<Item>) => more || items.length > 0
      })
    )
  )
