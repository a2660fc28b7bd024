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
 * Events in the order in which they were stored, for whoever follows them. Times do not tell that order: what slow rules make has the time of its request,
 * clocks differ, and of two transactions the later one may commit first. Transactions have numbers, and the number of the oldest one under way: below
 * it everything is committed or never will be. So a reader is shown what is below it, in order, and nothing ever comes to be behind it.
 */

/** Commits that are read at once, and ids that a page looks at. */
const entriesAtOnce = 200
const examineAtMost = 10_000
/** Events that are looked up by one statement. */
const lookedUpAtOnce = 500

/** Where a reader goes on: behind so many events of an entry. `at`: what comes behind it was stored since (Unix ms). */
interface Position {
  readonly txid: string
  readonly entry: string
  readonly taken: number
  readonly at: number
}

/** A page: of its cursor only what comes next is left. */
export interface FeedPage {
  readonly key: FilterKey
  /** `now`, or the cursor of the page before. */
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
  // Against mistakes, as of lists: whoever makes one up reads events of their own team from another place.
  const c = hash("sha256", JSON.stringify(parts), "base64url").slice(0, 8)
  return Buffer.from(encode({ ...parts, c })).toString("base64url")
}

const invalid = (message: string) => Result.fail(fail("INVALID_CURSOR", message))

const readAfter = (key: FilterKey, text: string): Result.Result<Position, GatewayError> => {
  const found = decode(Buffer.from(text, "base64url").toString("utf8"))
  if (Option.isNone(found)) return invalid("the cursor is not one that a feed returned")
  const { e, f, n, t, x } = found.value
  const position = { txid: x, entry: e, taken: n, at: t }
  if (feedCursor(f, position) !== text) return invalid("the cursor was changed on its way")
  return f === key ? Result.succeed(position) : invalid("the cursor belongs to a feed with other filters")
}

interface Horizon {
  /** The oldest transaction under way, and the next one: what is below the oldest is seen by every later statement. */
  readonly oldest: string
  readonly next: string
  /** What was stored before (Unix ms) may be gone. */
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

/** In the order of numbers: a bare "txid" would be the text that is selected, of which "1000" comes before "999". */
const entriesFrom = Effect.fnUntraced(function* (team: string, { entry, txid }: Position, { oldest }: Horizon) {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<Entry>`
    select id, txid::text as txid, event_ids from event_feed
    where team_id = ${team} and (txid, id) >= (${txid}::xid8, ${entry}) and txid < ${oldest}::xid8
    order by event_feed.txid, event_feed.id limit ${entriesAtOnce}`.unprepared
})

/** An event of an entry, and where a reader is who has taken it. */
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
 * The events behind a position, as they were stored, and the position behind these. Whoever goes on by it is shown every event of the filter once. `more`: there
 * are more to be read now. `withData`: the page ends by what its events hold, too.
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
    return yield* fail("INVALID_CURSOR", "the cursor is of another database: begin anew, by after=now")
  }
  if (start.at < horizon.kept) {
    return yield* fail(
      "INVALID_CURSOR",
      "what came behind the cursor is not all kept any more: begin anew, by after=now"
    )
  }
  // Behind the horizon's look: a filter that gathers ids finds all that the entries below the horizon have.
  const { driven, ids, residual } = yield* plan(team, filter, { lower: prefixes.event, upper: `${prefixes.event}~` })
  const wanted = ids === null ? null : new Set(ids)
  const table = eventTable(sql, at)

  const rows: Array<EventRow> = []
  let bytes = 0
  let position = start
  const page = (more: boolean) => ({
    rows,
    // Who is not at the end may be far behind: it is not new because it was read now.
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
