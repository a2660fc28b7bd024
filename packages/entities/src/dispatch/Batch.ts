import { Schema, SchemaTransformation } from "effect"

/** What was just committed, on its way to the actor that it is for. */
export class Batch<Item> {
  readonly items: ReadonlyArray<Item>
  /** There are more that are not in it: the actor finds them in SQL. */
  readonly more: boolean
  constructor(items: ReadonlyArray<Item>, more = false) {
    this.items = items
    this.more = more
  }
}

/**
 * A batch is given to an actor of its own process, as it is. One that has to cross the network, because its actor is at another runner,
 * only tells that one that there is something to be read. (Events that are meant for another runner travel in a `Handover`.)
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
