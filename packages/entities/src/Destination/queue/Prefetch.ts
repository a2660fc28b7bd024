import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { type DueRow, dueRows, pendingEvents } from "@tidegate/storage/delivery/DeliveryRows"
import { firstOfKeys, nextKeys, type OrderedRow } from "@tidegate/storage/delivery/OrderingKeys"
import { type DeliveryItem, storedItem } from "./DeliveryItem.ts"
import type { LinesRead, QueueReads } from "./QueueHost.ts"
import type { LineReads } from "./OrderingKeys.ts"

/** Due rows that one refill may read. */
const refillRows = 1_000
/** Bytes of bodies that one refill reads at most, plus one body. */
const refillBytes = 8 * 1024 * 1024
/** Events that a refill may always add, even to a full window, so that every connection queue gets its turn. */
const minRefill = 64

/** The events read for a window, and the connections that have more due rows than were read. */
export interface Refill {
  readonly items: ReadonlyArray<DeliveryItem>
  readonly behind: ReadonlySet<string>
  readonly lines: ReadonlyArray<LinesRead>
}

/** The window to fill. */
export interface RefilledWindow {
  readonly lanes: number
  readonly room: number
  /** How many events of each connection are in memory already: they are due first, so a read finds them before later ones. */
  readonly known: ReadonlyMap<string, number>
  /** Whether an event is in memory already. */
  readonly isKnown: (eventId: string) => boolean
  readonly reads: QueueReads
}

/** The rows to read, of those that were found. */
interface Wanted {
  readonly ids: ReadonlyArray<string>
  readonly behind: Set<string>
  /** The connections of the ids. */
  readonly connections: ReadonlySet<string>
}

/** Finds the rows of a destination that are due by `until` (Unix ms), up to the capacity of the window. */
const findDue = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  until: number,
  window: RefilledWindow
): Effect.fn.Return<Wanted, SqlError.SqlError, Database> {
  const perLane = Math.max(50, Math.ceil(refillRows / Math.max(1, window.lanes)))
  const due = yield* dueRows(shard, destinationId, until, perLane, window.known)
  const counts = new Map<string, number>()
  const unknown: Array<{ readonly rank: number; readonly row: DueRow }> = []
  const ids: Array<string> = []
  const behind = new Set<string>()
  const room = Math.max(minRefill, window.room)
  for (const row of due) {
    const rank = (counts.get(row.connection_id) ?? 0) + 1
    counts.set(row.connection_id, rank)
    if (rank === perLane + (window.known.get(row.connection_id) ?? 0)) behind.add(row.connection_id)
    if (!window.isKnown(row.event_id)) unknown.push({ rank, row })
  }
  // By rank in their connection queue: those with the least in memory come first, so that none is left out however many there
  // are.
  unknown.sort((a, b) => a.rank - b.rank)
  for (const { row } of unknown) {
    if (ids.length < room) ids.push(row.event_id)
    else behind.add(row.connection_id)
  }
  return { ids, behind, connections: new Set(unknown.map(({ row }) => row.connection_id)) }
})

/** The largest number of events of one ordering key that is read by its key. */
const maxOfLine = 32

/** The first events of an ordering key, which may go one after the other, and whether it may have more. */
interface FoundLine {
  readonly key: string
  readonly ids: ReadonlyArray<string>
  readonly more: boolean
}

interface FoundLines {
  readonly connectionId: string
  readonly lines: ReadonlyArray<FoundLine>
  readonly lookedTo: string | null | undefined
}

/** Finds the events of these ordering keys that may go by `until` (Unix ms). */
const findLines = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  connectionId: string,
  until: number,
  { after, keys, most }: LineReads
): Effect.fn.Return<FoundLines, SqlError.SqlError, Database> {
  const of = { shard, destinationId, connectionId }
  const asked = new Set(keys)
  const perLine = Math.max(1, Math.min(maxOfLine, Math.floor(most / Math.max(1, keys.length))))
  const rows = new Map<string, Array<OrderedRow>>()
  const gather = (found: ReadonlyArray<OrderedRow>): void => {
    for (const row of found) {
      const line = rows.get(row.ordering_key)
      if (line === undefined) rows.set(row.ordering_key, [row])
      else if (!line.some(({ event_id }) => event_id === row.event_id)) line.push(row)
    }
  }
  gather(yield* firstOfKeys(of, keys, perLine))
  let lookedTo: string | null | undefined
  if (after !== null) {
    const page = yield* nextKeys(of, after, most)
    lookedTo =
      page.length < most ? null : page.reduce((last, row) => (row.ordering_key > last ? row.ordering_key : last), "")
    gather(page)
  }
  const lines = [...rows].flatMap(([key, line]) => {
    // An event that was attempted before goes first: another one may have been stored at the same time with an earlier position.
    line.sort((a, b) => Number(a.ready_at !== null) - Number(b.ready_at !== null) || a.place - b.place)
    const isWhole = asked.has(key) && line.length < perLine
    const isHeld = ({ ready_at }: OrderedRow) => ready_at === null || ready_at > until
    // The poller finds the key's first event when it is due; until then the others wait.
    const end = line.findIndex(isHeld)
    const free = end === -1 ? line : line.slice(0, end)
    const ids = free.map(({ event_id }) => event_id)
    // An event that is stored after this read has a wake-up notification of its own.
    return ids.length === 0 ? [] : [{ key, ids, more: !isWhole || free.length < line.length }]
  })
  return { connectionId, lines, lookedTo }
})

/**
 * Reads the rows of a destination that are due by `until` (Unix ms), and the first events of ordering keys that may go by then,
 * up to the capacity of the window.
 */
export const readRefill = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  until: number,
  window: RefilledWindow
): Effect.fn.Return<Refill, SqlError.SqlError, Database> {
  const { behind, connections, ids } = window.reads.due
    ? yield* findDue(shard, destinationId, until, window)
    : { behind: new Set<string>(), connections: new Set<string>(), ids: [] }
  const found = yield* Effect.forEach(window.reads.lines, ([connectionId, reads]) =>
    findLines(shard, destinationId, connectionId, until, reads)
  )
  const inLine = found.flatMap(({ lines }) => lines.flatMap((line) => line.ids))
  const read = yield* pendingEvents([...ids, ...inLine], refillBytes)
  const bodies = read.reduce((sum, row) => sum + (row.body?.length ?? 0), 0)
  // Limited by bytes: what was not read is still in SQL.
  const isCut = bodies >= refillBytes
  if (isCut) for (const connectionId of connections) behind.add(connectionId)
  const items = new Map(read.map((row) => [row.id, storedItem(row)]))
  const itemsOf = (ids: ReadonlyArray<string>) => ids.flatMap((id) => items.get(id) ?? [])
  return {
    items: itemsOf(ids),
    behind,
    lines: found.map(({ connectionId, lines, lookedTo }) => ({
      connectionId,
      lookedTo,
      lines: lines.map((line) => {
        const items = itemsOf(line.ids)
        // An event that is missing although the read was not cut off is no longer pending, or cannot be sent.
        return { key: line.key, items, more: isCut || (line.more && items.length > 0) }
      })
    }))
  }
})
