import { isUpTo } from "@tidegate/model/Characters"
import { inSlices } from "@tidegate/runtime/EventLoopBudget"
import type { Effect } from "effect"
import { hash } from "node:crypto"
import type { Item } from "./Adapter.ts"

/** How things of providers become items. */

/** The items of one poll or one notification. */
export const maxItems = 1_000
/** Bytes of an item. */
export const maxItemBytes = 1_048_576
/** The largest notification (bytes) that is read directly. For a larger one, a poll reads the items. */
export const maxFatBytes = 1_048_576

const longestId = 1_024

/** The kind of thing and its id. A longer id is replaced by its hash. */
export const itemId = (kind: string, ...parts: ReadonlyArray<string>): string => {
  const id = [kind, ...parts].join(":")
  return isUpTo(id, longestId) ? id : `${kind}:sha256:${hash("sha256", id)}`
}

/** One item. If its value is too large, the value is left out and the item says so, because the thing still happened. */
export const itemOf = (id: string, value: unknown, occurredAt: number | null): Item => {
  const body = JSON.stringify(value)
  return Buffer.byteLength(body) <= maxItemBytes
    ? { id, body, occurredAt }
    : {
        id,
        body: JSON.stringify({ item_id: id, omitted: `the item has more than ${maxItemBytes} bytes` }),
        occurredAt
      }
}

/** Writes many items: in steps, because together they may be as large as an answer. */
export const writing = (makes: ReadonlyArray<() => Item>): Effect.Effect<ReadonlyArray<Item>> =>
  inSlices(written(makes))

function* written(makes: ReadonlyArray<() => Item>) {
  const items: Array<Item> = []
  for (const make of makes) {
    items.push(make())
    yield
  }
  return items
}
