import { hash } from "node:crypto"
import * as Characters from "@tidegate/model/Characters"
import { Clock, Effect, Option, Result, Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { idTime, prefixes } from "@tidegate/model/Ids"
import type { FilterKey } from "./Cursor.ts"
import { type EventFilter, plan } from "./EventPlan.ts"
import { type EventRow, eventTable } from "./EventRow.ts"
import { eventBytes, largestPage } from "./PageSize.ts"
import { pick } from "./Scan.ts"

/*
 * The events in the order in which they were stored, for callers that follow them. Times do not give that order: an event behind
 * slow rules has the time of its request, clocks differ, and of two transactions the later one may commit first. Transactions
 * have numbers, and the number of the oldest one under way is known: everything below it is committed or never will be. So a
 * reader gets only what is below it, in order, and nothing is ever inserted before what it has read.
 */

/** Commits read at once, and ids examined for a page. */
const entriesAtOnce = 200
const examineAtMost = 10_000
/** Events read by one statement. */
const lookedUpAtOnce = 500

/**
 * Where a reader continues: after that many events of an entry. `at`: everything behind it was stored after this time (Unix ms).
 */
interface Position {
  readonly txid: string
  readonly entry: string
  readonly taken: number
  readonly at: number
}

/** A page. Its cursor points forward only. */
export interface FeedPage {
  readonly key: FilterKey
  /** `now`, or the cursor of the previous page. */
  readonly after: string
  readonly limit: number
}

const Encoded = Schema.fromJsonString(
  Schema.Struct({
    f: Schema.String,
    x: Schema.String.check(Schema.isPattern(/^[0-9]{1,20}$/)),
    e: Schema.String.check(Characters.upTo(100), Schema.isPattern(/^[\w-]*$/)),
    n: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)),
    t: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 253_402_300_800_000 })),
    c: Schema.String
  })
)
const decode = Schema.decodeUnknownOption(Encoded)
const encode = Schema.encodeSync(Encoded)

export const feedCursor = (f: FilterKey, { at: t, entry: e, taken: n, txid: x }: Position): string => {
  const parts = { f, x, e, n, t }
  // A checksum against mistakes, as for lists: a forged cursor only reads events of the caller's own team from another position.
  const c = hash("sha256", JSON.stringify(parts), "base64url").slice(0, 8)
  return Buffer.from(encode({ ...parts, c })).toString("base64url")
}

const invalid = (message: string) => Result.fail(fail("INVALID_CURSOR", message))

const readAfter = (key: FilterKey, text: string): Result.Result<Position, GatewayError> => {
  const found = decode(Buffer.from(text, "base64url").toString("utf8"))
  if (Option.isNone(found)) return invalid("the cursor is not one that a feed returned")
  const { e, f, n, t, x } = found.value
  const position = { txid: x, entry: e, taken: n, at: t }
  if (feedCursor(f, position) !== text) return invalid("the cursor was modified")
  return f === key ? Result.succeed(position) : invalid("the cursor belongs to a feed with other filters")
}

interface Horizon {
  /** The oldest transaction under way, and the next one: every later statement sees everything below the oldest. */
  readonly oldest: string
  readonly next: string
  /** Rows that were stored before this time (Unix ms) may be deleted. */
  readonly kept: number
}

const horizonOf = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Horizon>`
    select pg_snapshot_xmin(pg_current_snapshot())::text as oldest, pg_snapshot_xmax(pg_current_snapshot())::text as next,
      greatest(0,
        (select extract(epoch from records_cleared_to) * 1000 from teams where id = ${team}),
        (select extract(epoch from to_date(min(right(c.relname, 8)), 'YYYYMMDD')) * 1000
          from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'event_feed'::regclass)
      )::float8 as kept`
  return row!
})

interface Entry {
  readonly id: string
  readonly txid: string
  readonly event_ids: ReadonlyArray<string>
}

/** In the order of the numbers: a bare "txid" would be the selected text, which sorts "1000" before "999". */
const entriesFrom = Effect.fnUntraced(function* (team: string, { entry, txid }: Position, { oldest }: Horizon) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Entry>`
    select id, txid::text as txid, event_ids from event_feed
    where team_id = ${team} and (txid, id) >= (${txid}::xid8, ${entry}) and txid < ${oldest}::xid8
    order by event_feed.txid, event_feed.id limit ${entriesAtOnce}`.unprepared
})

/** An event of an entry, and the reader's position after it. */
interface Fed {
  readonly id: string
  readonly behind: Pick<Position, "entry" | "taken" | "txid">
}

const fedBy = (entries: ReadonlyArray<Entry>, from: Position): ReadonlyArray<Fed> =>
  entries.flatMap(({ event_ids, id: entry, txid }) => {
    const taken = entry === from.entry && txid === from.txid ? from.taken : 0
    return event_ids.slice(taken).map((id, n) => ({ id, behind: { txid, entry, taken: taken + n + 1 } }))
  })

/**
 * The events after a position, in stored order, and the position after them. A reader that continues from there gets every event
 * of the filter exactly once. `more`: there are more to read now. `withData`: the page is limited by the size of the events' data
 * too.
 */
export const follow = Effect.fnUntraced(function* (
  team: string,
  filter: EventFilter,
  { after, key, limit }: FeedPage,
  withData: boolean
): Effect.fn.Return<
  { readonly rows: ReadonlyArray<EventRow>; readonly cursor: string; readonly more: boolean },
  GatewayError | SqlError.SqlError,
  SqlClient.SqlClient
> {
  const sql = yield* SqlClient.SqlClient
  const at = yield* Clock.currentTimeMillis
  const horizon = yield* horizonOf(team)
  if (after === "now") {
    const start = { txid: horizon.oldest, entry: "", taken: 0, at }
    return { rows: [], cursor: feedCursor(key, start), more: false }
  }
  const start = yield* Effect.fromResult(readAfter(key, after))
  if (BigInt(start.txid) > BigInt(horizon.next)) {
    return yield* fail("INVALID_CURSOR", "the cursor belongs to another database: start again with after=now")
  }
  if (start.at < horizon.kept) {
    return yield* fail("INVALID_CURSOR", "events after the cursor are no longer stored: start again with after=now")
  }
  // After the horizon was read: a filter that gathers ids then finds all events of the entries below the horizon.
  const { driven, ids, residual } = yield* plan(team, filter, { lower: prefixes.event, upper: `${prefixes.event}~` })
  const wanted = ids === null ? null : new Set(ids)
  const table = eventTable(sql, at)

  const rows: Array<EventRow> = []
  let bytes = 0
  let position = start
  const page = (more: boolean) => ({
    rows,
    // A reader that is not at the end may be far behind: then the time of the last entry counts, not the time of this read.
    cursor: feedCursor(key, { ...position, at: more ? Math.max(start.at, idTime(position.entry) ?? 0) : at }),
    more
  })
  for (let examined = 0; examined < examineAtMost;) {
    const part = fedBy(yield* entriesFrom(team, position, horizon), position).slice(0, lookedUpAtOnce)
    if (part.length === 0) return page(false)
    const looked = part.map(({ id }) => id).filter((id) => wanted?.has(id) ?? true)
    const options = { team, table, ids: looked, bounds: [], residual: [...residual, ...driven] }
    const found = yield* pick<EventRow>({ ...options, dir: "asc", limit: looked.length })
    const byId = new Map(found.rows.map((row) => [row.id, row]))
    const bytesOf = withData ? yield* eventBytes(team, found.rows) : null
    for (const { behind, id } of part) {
      if (rows.length === limit) return page(true)
      const row = byId.get(id)
      if (row !== undefined) {
        bytes += bytesOf?.get(id) ?? 0
        if (rows.length > 0 && bytes > largestPage) return page(true)
        rows.push(row)
      }
      position = { at: start.at, ...behind }
    }
    examined += part.length
  }
  return page(true)
})
