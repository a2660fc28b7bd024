import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Database } from "@tidegate/storage/Database"
import { type DueRow, dueRows, pendingEvents } from "@tidegate/storage/delivery/DeliveryRows"
import { firstOfKeys, nextKeys, type OrderedRow } from "@tidegate/storage/delivery/OrderingKeys"
import { type DeliveryItem, storedItem } from "./DeliveryItem.ts"
import type { KeysRead, QueueReads } from "./QueueHost.ts"
import type { WindowMemory } from "./DeliveryWindow.ts"
import type { KeyReads } from "./OrderingKeys.ts"

/** Due rows that one prefetch may read. */
const maxRows = 1_000
/** Bytes of bodies that one prefetch reads at most, plus one body. */
const maxBytes = 8 * 1024 * 1024
/** Events that a prefetch may always add, even to a full window, so that every connection queue gets its turn. */
const minEvents = 64

/** The events read for a window, and the connections that have more due rows than were read. */
export interface Prefetched {
  readonly items: ReadonlyArray<DeliveryItem>
  readonly behind: ReadonlySet<string>
  readonly keys: ReadonlyArray<KeysRead>
}

/** The window to fill. */
export interface WindowToFill {
  readonly connections: number
  /** The events in memory are due first, so a read finds them before later ones. */
  readonly memory: WindowMemory
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
  { connections, memory }: WindowToFill
): Effect.fn.Return<Wanted, SqlError.SqlError, Database> {
  const perConnection = Math.max(50, Math.ceil(maxRows / Math.max(1, connections)))
  const known = memory.knownByConnection()
  const due = yield* dueRows(shard, destinationId, until, perConnection, known)
  const counts = new Map<string, number>()
  const unknown: Array<{ readonly rank: number; readonly row: DueRow }> = []
  const ids: Array<string> = []
  const behind = new Set<string>()
  const room = Math.max(minEvents, memory.room)
  for (const row of due) {
    const rank = (counts.get(row.connection_id) ?? 0) + 1
    counts.set(row.connection_id, rank)
    if (rank === perConnection + (known.get(row.connection_id) ?? 0)) behind.add(row.connection_id)
    if (!memory.isKnown(row.event_id)) unknown.push({ rank, row })
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
const maxPerKey = 128

/** The first events of an ordering key, which may go one after the other, and whether it may have more. */
interface FoundKey {
  readonly key: string
  /** None of them had an attempt. */
  readonly rows: ReadonlyArray<OrderedRow>
  readonly more: boolean
}

interface FoundKeys {
  readonly connectionId: string
  readonly keys: ReadonlyArray<FoundKey>
  readonly scannedTo: string | null | undefined
}

/** Finds the events of these ordering keys that may go by `until` (Unix ms). */
const findKeys = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  connectionId: string,
  until: number,
  { after, keys, max, perKey }: KeyReads
): Effect.fn.Return<FoundKeys, SqlError.SqlError, Database> {
  const of = { shard, destinationId, connectionId }
  const asked = new Set(keys)
  const perRead = Math.min(maxPerKey, perKey)
  const rows = new Map<string, Array<OrderedRow>>()
  const gather = (found: ReadonlyArray<OrderedRow>): void => {
    for (const row of found) {
      const events = rows.get(row.ordering_key)
      if (events === undefined) rows.set(row.ordering_key, [row])
      else if (!events.some(({ event_id }) => event_id === row.event_id)) events.push(row)
    }
  }
  gather(yield* firstOfKeys(of, keys, perRead))
  let scannedTo: string | null | undefined
  if (after !== null) {
    const page = yield* nextKeys(of, after, max)
    scannedTo =
      page.length < max ? null : page.reduce((last, row) => (row.ordering_key > last ? row.ordering_key : last), "")
    gather(page)
  }
  const found = [...rows].flatMap(([key, events]) => {
    // An event that was attempted before goes first: another one may have been stored at the same time with an earlier position.
    events.sort((a, b) => Number(a.ready_at !== null) - Number(b.ready_at !== null) || a.place - b.place)
    const isWhole = asked.has(key) && events.length < perRead
    const isHeld = ({ ready_at }: OrderedRow) => ready_at === null || ready_at > until
    // The poller finds the key's first event when it is due; until then the others wait.
    const end = events.findIndex(isHeld)
    const free = end === -1 ? events : events.slice(0, end)
    // An event that is stored after this read has a wake-up notification of its own.
    return free.length === 0 ? [] : [{ key, rows: free, more: !isWhole || free.length < events.length }]
  })
  return { connectionId, keys: found, scannedTo }
})

/**
 * Reads the rows of a destination that are due by `until` (Unix ms), and the first events of ordering keys that may go by then,
 * up to the capacity of the window.
 */
export const readPrefetch = Effect.fnUntraced(function* (
  shard: number,
  destinationId: string,
  until: number,
  window: WindowToFill
): Effect.fn.Return<Prefetched, SqlError.SqlError, Database> {
  const { behind, connections, ids } = window.reads.due
    ? yield* findDue(shard, destinationId, until, window)
    : { behind: new Set<string>(), connections: new Set<string>(), ids: [] }
  const found = yield* Effect.forEach(window.reads.keys, ([connectionId, reads]) =>
    findKeys(shard, destinationId, connectionId, until, reads)
  )
  const noted = new Map<string, DeliveryItem>()
  const byKey: Array<string> = []
  for (const { event_id, place, ready_at } of found.flatMap(({ keys }) => keys.flatMap(({ rows }) => rows))) {
    const item = window.memory.takeNoted(event_id)
    if (item === undefined) byKey.push(event_id)
    else noted.set(event_id, { ...item, dueAt: ready_at!, place })
  }
  const read = yield* pendingEvents([...ids, ...byKey], maxBytes)
  const bodies = read.reduce((sum, row) => sum + (row.body?.length ?? 0), 0)
  // Limited by bytes: what was not read is still in SQL.
  const isCut = bodies >= maxBytes
  if (isCut) for (const connectionId of connections) behind.add(connectionId)
  const items = noted
  for (const row of read) items.set(row.id, storedItem(row))
  const itemsOf = (ids: ReadonlyArray<string>) => ids.flatMap((id) => items.get(id) ?? [])
  return {
    items: itemsOf(ids),
    behind,
    keys: found.map(({ connectionId, keys, scannedTo }) => ({
      connectionId,
      scannedTo,
      keys: keys.map(({ key, more, rows }) => {
        const items = itemsOf(rows.map(({ event_id }) => event_id))
        // An event that is missing although the read was not cut off is no longer pending, or cannot be sent.
        return { key, items, more: isCut || (more && items.length > 0) }
      })
    }))
  }
})
