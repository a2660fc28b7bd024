import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { type DueRow, dueRows, pendingEvents } from "@tidegate/storage/DeliveryRows"
import { type DeliveryItem, storedItem } from "./DeliveryItem.ts"

/** How many due rows one refill may read. */
const refillRows = 1_000
/** How many bytes of bodies it reads at the most, and one body more. */
const refillBytes = 8 * 1024 * 1024
/** How many of them it may take into a window that is full, so that every lane gets to its turn. */
const leastRefill = 64

/** What was read for a window, and the connections that have more due rows than were. */
export interface Refill {
  readonly items: ReadonlyArray<DeliveryItem>
  readonly behind: ReadonlySet<string>
}

/** The window that is to be filled. */
export interface RefilledWindow {
  readonly lanes: number
  readonly room: number
  /** How many events of each connection are in memory already: they are due first, and hide what comes behind them. */
  readonly known: ReadonlyMap<string, number>
  /** Whether an event is in memory already. */
  readonly isKnown: (eventId: string) => boolean
}

/** Reads the rows of a destination that are due by `until` (Unix ms), as far as there is room for them. */
export const readRefill = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  until: number,
  window: RefilledWindow
): Effect.fn.Return<Refill, SqlError.SqlError, Database> {
  const perLane = Math.max(50, Math.ceil(refillRows / Math.max(1, window.lanes)))
  const due = yield* dueRows(shard, destinationId, until, perLane, window.known)
  const counts = new Map<string, number>()
  const unknown: Array<{ readonly rank: number; readonly row: DueRow }> = []
  const wanted: Array<string> = []
  const behind = new Set<string>()
  const room = Math.max(leastRefill, window.room)
  for (const row of due) {
    const rank = (counts.get(row.connection_id) ?? 0) + 1
    counts.set(row.connection_id, rank)
    if (rank === perLane + (window.known.get(row.connection_id) ?? 0)) behind.add(row.connection_id)
    if (!window.isKnown(row.event_id)) unknown.push({ rank, row })
  }
  // By rank in their lane: the lanes that have the least in memory first, so that none is left out however many there are.
  unknown.sort((a, b) => a.rank - b.rank)
  for (const { row } of unknown) {
    if (wanted.length < room) wanted.push(row.event_id)
    else behind.add(row.connection_id)
  }
  const read = yield* pendingEvents(wanted, refillBytes)
  const bodies = read.reduce((sum, row) => sum + (row.body?.length ?? 0), 0)
  // Cut off by size: whatever was not read is still there.
  if (bodies >= refillBytes) for (const { row } of unknown) behind.add(row.connection_id)
  return { items: read.map(storedItem), behind }
})
