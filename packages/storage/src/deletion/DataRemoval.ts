import { Clock, Context, Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { idBound } from "@tidegate/model/Ids"
import { Secrets, type SecretUnreadable } from "../secrets/Secrets.ts"
import * as Columns from "../journal/Columns.ts"
import { readHeaders } from "../reads/Payload.ts"
import { endDeletion, type Row, rowColumns } from "./DataDeletions.ts"
import { type Place, readPlaces } from "./Places.ts"
import { formsOf, isInCoded } from "./SearchedText.ts"
import { type Forms, isDoomed, isInWindow, selectedBy } from "./Selection.ts"

/*
 * Carries out deletions of data, piece by piece. A piece looks at some rows of one table along its primary key, in one transaction
 * that also writes how far it has come: a process may die at any line, and the next one goes on.
 *
 * The search goes through all tables and collates the ids of requests and runs: first those that match, then those that were made
 * of them, until a pass finds no more. A plan then counts the rows that belong to them. After the confirmation the search begins
 * anew, what waits is cancelled, and the rows are deleted. What was under way may still write, so search and deletion are repeated
 * a while later, until both have found nothing.
 */

export interface DataDeletionPace {
  /** Rows and stored bytes that one piece looks at. */
  readonly rows: number
  readonly bytes: number
  /** The time (ms) until the deletion searches again. It is longer than any work that can be under way. */
  readonly quietMs: number
  /** How long (ms) a plan waits to be confirmed. */
  readonly planMs: number
  /** Requests and runs that one deletion may select. */
  readonly targets: number
}

export const DataDeletionPace = Context.Reference<DataDeletionPace>("@tidegate/storage/DataDeletionPace", {
  defaultValue: () => ({ rows: 2_000, bytes: 4 * 1024 * 1024, quietMs: 90_000, planMs: 86_400_000, targets: 500_000 })
})

/** How far (ms) the clocks of two processes may differ. */
const clocksDifferMs = 600_000

/** A deletion that has not ended. */
export type OpenDataDeletion = Pick<Row, "id" | "team_id" | "stage">

/** Deletions that have not ended, the oldest first. */
export const openDataDeletions: Effect.Effect<
  ReadonlyArray<OpenDataDeletion>,
  SqlError.SqlError,
  SqlClient.SqlClient
> = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  return yield* sql<OpenDataDeletion>`
    select id, team_id, stage from data_deletions where finished_at is null order by id limit 1000`
})

/** The rows that a piece looks at: behind a key, up to another one. */
interface Range {
  readonly of: Fragment
  readonly last: ReadonlyArray<string>
  readonly count: number
  readonly isLast: boolean
}

type Fragment = Statement.Fragment

/** How a key compares with stored values of one. */
const compared = (
  sql: SqlClient.SqlClient,
  { key }: Place,
  sign: ">" | "<=",
  values: ReadonlyArray<string>
): Fragment => {
  const columns = sql.literal(`(${key.map(({ name }) => `r.${name}`).join(", ")}) ${sign} `)
  // Converted to text first. Otherwise the driver would send a text where the server expects bytes.
  const given = key.map(({ type }, n) => sql`${values[n] ?? ""}::text::${sql.literal(type)}`)
  return sql`${columns} (${sql.csv(given)})`
}

const nextRange = Effect.fnUntraced(function* (row: Row, place: Place) {
  const sql = yield* SqlClient.SqlClient
  const pace = yield* DataDeletionPace
  const { bytes, key, prefix, table, texts } = place
  const names = key.map(({ name }) => `r.${name}`).join(", ")
  // Nothing is older than the request or the run that it came of, by the clock of the process that made it.
  const since = row.filter.from === undefined ? 0 : Date.parse(row.filter.from) - clocksDifferMs
  const day = prefix === null ? sql`true` : sql`${sql.literal(`r.${key[0]!.name}`)} >= ${idBound(prefix, since)}`
  const behind = row.at_key === null ? day : compared(sql, place, ">", row.at_key)
  const sized = [...texts, ...bytes].map((name) => `coalesce(pg_column_size(r.${name}), 0)`).join(" + ")
  const [end] = yield* sql<{ last: ReadonlyArray<string>; n: number; of: number }>`
    select array[${sql.literal(key.map(({ name }) => `${name}::text`).join(", "))}] as last, n::int4 as n, rows::int4 as of from (
      select ${sql.literal(names)}, row_number() over w as n, count(*) over () as rows,
        sum(case when r.team_id = ${row.team_id} then ${sql.literal(sized === "" ? "0" : sized)} else 0 end) over w as size
      from (select r.* from ${sql(table)} r where ${behind} order by ${sql.literal(names)} limit ${pace.rows}) r
      window w as (order by ${sql.literal(names)})
    ) r
    where n = 1 or size <= ${pace.bytes} order by n desc limit 1`
  if (end === undefined) return null
  return {
    of: sql`(${behind} and ${compared(sql, place, "<=", end.last)} and r.team_id = ${row.team_id})`,
    last: end.last,
    count: end.n,
    isLast: end.n === end.of && end.of < pace.rows
  } satisfies Range
})

/** Adds ids to the selected ones. Returns how many were new. */
const select = Effect.fnUntraced(function* (row: Row, ids: Fragment) {
  const sql = yield* SqlClient.SqlClient
  const [added] = yield* sql<{ count: number }>`
    with added as (
      insert into data_deletion_targets (deletion_id, target_id, team_id)
      select distinct ${row.id}, id, ${row.team_id} from (${ids}) s where id is not null
      on conflict do nothing returning 1
    ) select count(*)::int4 as count from added`
  return added!.count
})

/** Looks for the text in compressed bodies, which the database cannot read. */
const searchCoded = Effect.fnUntraced(function* (row: Row, place: Place, range: Range, forms: ReadonlyArray<string>) {
  const sql = yield* SqlClient.SqlClient
  const { coded, root, table } = place
  if (coded === undefined || root === null) return { found: [] as Array<string>, unreadable: 0 }
  const [headers, body] = coded.map((name) => sql.literal(`r.${name}`)) as [Fragment, Fragment]
  const rows = yield* sql<{ id: string; headers: string; body: Buffer }>`
    select ${sql.literal(`r.${root}`)} as id, ${headers} as headers, ${body} as body from ${sql(table)} r
    where ${range.of} and ${isInWindow(sql, row, root)} and ${body} is not null and strpos(${headers}, '"content-encoding"') > 0`
  const bytes = forms.map((form) => Buffer.from(form))
  const found: Array<string> = []
  let unreadable = 0
  for (const one of rows) {
    const isIn = yield* isInCoded(one.body, readHeaders(one.headers)["content-encoding"], bytes)
    if (isIn === true) found.push(one.id)
    if (isIn === null) unreadable++
  }
  return { found, unreadable }
})

/** The result of a piece: what it has found, or how many rows it has counted or deleted. */
interface Done {
  readonly found: number
  readonly unreadable: number
}

const search = Effect.fnUntraced(function* (row: Row, place: Place, range: Range, forms: Forms) {
  const sql = yield* SqlClient.SqlClient
  let found = 0
  for (const { id, when } of selectedBy(sql, row, place, forms)) {
    found += yield* select(row, sql`select ${id} as id from ${sql(place.table)} r where ${range.of} and ${when}`)
  }
  if (row.pass > 1 || forms === null) return { found, unreadable: 0 } satisfies Done
  const coded = yield* searchCoded(row, place, range, forms)
  if (coded.found.length > 0) {
    found += yield* select(row, sql`select id from unnest(${Columns.text(coded.found)}) as u (id)`)
  }
  return { found, unreadable: coded.unreadable } satisfies Done
})

const count = Effect.fnUntraced(function* (row: Row, place: Place, range: Range, forms: Forms) {
  const sql = yield* SqlClient.SqlClient
  const [counted] = yield* sql<{ count: number }>`
    select count(*)::int4 as count from ${sql(place.table)} r where ${range.of} and ${isDoomed(sql, row, place, forms)}`
  return { found: counted!.count, unreadable: 0 } satisfies Done
})

const remove = Effect.fnUntraced(function* (row: Row, place: Place, range: Range, forms: Forms) {
  const sql = yield* SqlClient.SqlClient
  const { clears, table, waiting } = place
  const doomed = sql`${range.of} and ${isDoomed(sql, row, place, forms)}`
  const gone =
    clears === undefined
      ? sql`delete from ${sql(table)} r where ${doomed} returning ${sql.literal(waiting === undefined ? "1" : "r.id")}`
      : sql`update ${sql(table)} r set ${sql.literal(clears[0])} where ${doomed} returning 1`
  const others =
    waiting === undefined
      ? sql``
      : sql`, others as (delete from ${sql(waiting[0])} where ${sql(waiting[1])} in (select id from gone))`
  const [removed] = yield* sql<{ count: number }>`
    with gone as (${gone}) ${others} select count(*)::int4 as count from gone`
  return { found: removed!.count, unreadable: 0 } satisfies Done
})

const kinds = { searching: search, counting: count, removing: remove } as const

const isAtWork = (stage: Row["stage"]): stage is keyof typeof kinds => Object.hasOwn(kinds, stage)

/** The order of a pass: rows are deleted before those that they came of. */
const inOrder = (stage: keyof typeof kinds, places: ReadonlyArray<Place>): ReadonlyArray<Place> =>
  stage === "removing" ? places.toReversed() : places

const openText = Effect.fnUntraced(function* ({ id, team_id, text }: Row) {
  if (text === null) return null
  const secrets = yield* Secrets
  return formsOf(yield* secrets.decrypt({ team_id, table: "data_deletions", column: "text", id }, text))
})

/** When the next piece is due: at once, after so many milliseconds, or after somebody else has acted. */
export type NextPiece = number | "to be stopped" | "at rest"

const tooMany = (limit: number) => ({
  code: "TEAM_LIMIT_REACHED",
  message: `more than ${limit} requests and runs were found: delete them in several deletions, each of a shorter time (from, to)`
})

/** Does the next piece of a deletion, in one transaction. `known`: the places, for a caller that does several pieces. */
export const advanceDataDeletion = Effect.fnUntraced(function* (
  id: string,
  known?: ReadonlyArray<Place>
): Effect.fn.Return<NextPiece, SqlError.SqlError | SecretUnreadable, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const pace = yield* DataDeletionPace
  const now = yield* Clock.currentTimeMillis
  const places = known ?? (yield* readPlaces)
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const [row] = yield* sql<Row>`
        select ${sql.literal(rowColumns)} from data_deletions where id = ${id} and finished_at is null for update`
      if (row === undefined) return "at rest" as const
      if (row.stage === "stopping") return "to be stopped" as const
      if (!isAtWork(row.stage)) {
        if (row.pass_at === null || now < row.pass_at.getTime()) return "at rest" as const
        yield* endDeletion(id, "cancelled", { code: "REQUEST_TIMEOUT", message: "the plan was not confirmed in time" })
        return "at rest" as const
      }
      if (row.at_table === null && row.pass_at !== null && now < row.pass_at.getTime())
        return row.pass_at.getTime() - now
      const order = inOrder(row.stage, places)
      const index = Math.max(
        0,
        order.findIndex(({ table }) => table === row.at_table)
      )
      const place = order[index]!
      const range = yield* nextRange(row, place)
      const forms = yield* openText(row)
      const { found, unreadable } =
        range === null ? { found: 0, unreadable: 0 } : yield* kinds[row.stage](row, place, range, forms)
      const targets = row.targets + (row.stage === "searching" ? found : 0)
      if (targets > pace.targets) {
        yield* endDeletion(id, "failed", tooMany(pace.targets))
        return "at rest" as const
      }
      const counted = row.stage === "counting" ? "planned" : row.stage === "removing" ? "deleted" : null
      if (counted !== null && found > 0) {
        const counts = row[counted]
        yield* sql`
          update data_deletions set ${sql(counted)} = ${JSON.stringify({
            ...counts,
            [place.table]: (counts[place.table] ?? 0) + found
          })}::text::jsonb where id = ${id}`
      }
      const isOver = range === null || range.isLast
      const next = isOver ? order[index + 1]?.table : place.table
      yield* sql`
        update data_deletions set at_table = ${next ?? null}, at_key = ${isOver ? null : Columns.text(range.last)},
          found = found + ${found}, targets = ${targets}, unreadable = unreadable + ${unreadable}, looked_at = looked_at + ${range?.count ?? 0}
        where id = ${id}`
      return next === undefined ? yield* passEnded({ ...row, found: row.found + found, targets }, now) : 0
    })
  )
})

/** After a pass: the next one, or the next stage. `pass_at` stays once it is set: it tells the first deletion from its repetitions. */
const passEnded = Effect.fnUntraced(function* ({ confirmed_at, found, id, pass, pass_at, stage }: Row, now: number) {
  const sql = yield* SqlClient.SqlClient
  const { planMs, quietMs } = yield* DataDeletionPace
  const go = (to: Row["stage"], nextPass: number, at: Date | null = pass_at) =>
    sql`update data_deletions set stage = ${to}, pass = ${nextPass}, found = 0, at_table = null, at_key = null,
      pass_at = ${at}::timestamptz where id = ${id}`
  if (stage === "searching") {
    // The first pass may have missed what is linked to something that it found later.
    if (found > 0 || pass === 1) yield* go("searching", pass + 1)
    else yield* go(confirmed_at === null ? "counting" : "stopping", 1)
    return 0
  }
  if (stage === "counting") {
    yield* go("planned", 1, new Date(now + planMs))
    return "at rest" as const
  }
  if (found === 0 && pass_at !== null) {
    yield* endDeletion(id, "done")
    return "at rest" as const
  }
  yield* go("searching", 1, new Date(now + quietMs))
  // They are counted again, because the proof names the number of those that are left.
  yield* sql`update data_deletions set unreadable = 0 where id = ${id}`
  return quietMs
})
