import { Effect, type Schema } from "effect"
import { hash } from "node:crypto"
import type { Context, Item, Poller, ProviderError } from "../Adapter.ts"
import { listOf, memberOf } from "../Foreign.ts"
import { maxItems, writing } from "../Items.ts"

/**
 * Polls a list without a cursor: an item is new if it was not in the list before. The cursor contains short hashes of the ids. Those that have left
 * the list are kept for a while, because lists change their order.
 */

export interface Listed {
  readonly id: string
  readonly item: () => Item
}

export interface Listing {
  /** Newest first. The first 1,000 count. */
  readonly entries: ReadonlyArray<Listed>
  /** What the next request needs, for example an ETag. */
  readonly state: Schema.JsonObject
}

export interface Seen {
  /** Whether no list was read before. */
  readonly isFirst: boolean
  readonly has: (id: string) => boolean
}

/** Hashes that are kept: 16 characters each, so the cursor has at most 40 KB. */
const maxKept = 2_000

/** 96 bits: two of some thousand ids do not have the same by chance. */
const markOf = (id: string): string => hash("sha256", id, "base64url").slice(0, 16)

/**
 * Whether a list contained an item when it was read up to this cursor. A notification may repeat the whole list, as hubs of feeds
 * do: what the first poll found is old there, too. Cursors of other pollers contain no items.
 */
export const listedBefore = (cursor: unknown): ((id: string) => boolean) => {
  const marks = new Set(listOf(cursor, "seen"))
  return (id) => marks.size > 0 && marks.has(markOf(id))
}

/**
 * `list` reads the list; "unchanged": the provider says that it is as before. `isSorted`: the list is known to be newest first. Then what
 * was not seen but is behind everything known is older: it has moved up because something else was removed.
 */
export const listPoller = (
  key: string,
  isSorted: boolean,
  list: (context: Context, state: Schema.JsonObject, seen: Seen) => Effect.Effect<Listing | "unchanged", ProviderError>
): Poller => ({
  key,
  poll: (context, cursor) =>
    Effect.gen(function* () {
      const marks = listOf(cursor, "seen").filter((mark) => typeof mark === "string")
      const known = new Set(marks)
      const isFirst = cursor === null
      const state = (memberOf(cursor, "state") ?? {}) as Schema.JsonObject
      const listing = yield* list(context, state, { isFirst, has: (id) => known.has(markOf(id)) })
      if (listing === "unchanged") return { items: [], cursor, more: false, cursorReset: false }
      const entries = new Map(listing.entries.slice(0, maxItems).map((entry) => [markOf(entry.id), entry]))
      const listed = [...entries.keys()]
      const lastKnown = listed.findLastIndex((mark) => known.has(mark))
      const recent = isSorted && lastKnown >= 0 ? listed.slice(0, lastKnown) : listed
      const fresh = isFirst ? [] : recent.filter((mark) => !known.has(mark))
      // A list that grows at its end already has the oldest item first.
      const isGrowing = known.has(listed[0] ?? "") && !known.has(listed.at(-1) ?? "")
      const ordered = isGrowing ? fresh : fresh.toReversed()
      const items = yield* writing(ordered.map((mark) => entries.get(mark)!.item))
      const kept = [...new Set([...listed, ...marks])].slice(0, maxKept)
      return { items, cursor: { seen: kept, state: listing.state }, more: false, cursorReset: false }
    })
})

const maxPages = 10

/**
 * Reads pages of a list, newest first, until one has something that is known, at most ten. The first poll reads one: everything that is
 * older stays unseen, and is behind what is known.
 */
export const newestPages = (
  seen: Seen,
  page: (
    cursor: string | null
  ) => Effect.Effect<{ readonly entries: ReadonlyArray<Listed>; readonly next: string | null }, ProviderError>
): Effect.Effect<ReadonlyArray<Listed>, ProviderError> =>
  Effect.gen(function* () {
    const all: Array<Listed> = []
    let cursor: string | null = null
    for (let count = 0; count < maxPages; count++) {
      const { entries, next }: { entries: ReadonlyArray<Listed>; next: string | null } = yield* page(cursor)
      all.push(...entries)
      cursor = next
      if (seen.isFirst || next === null || entries.some(({ id }) => seen.has(id))) break
    }
    return all
  })
