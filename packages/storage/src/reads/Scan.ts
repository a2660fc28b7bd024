import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

type Fragment = Statement.Fragment

/** What a list reads: a table, its short name in the fragments, and what is selected and joined to one of its rows. */
export interface Table {
  readonly name: string
  readonly alias: string
  readonly columns: Fragment
  readonly joins: string
}

/** The index that a scan follows: a column that the table has indexed together with `id`, and the values looked up in it. */
export interface Drive {
  readonly column: string
  readonly values: ReadonlyArray<string>
  /** The condition of the index, when it is a partial one. */
  readonly condition?: Fragment
}

export interface ScanOptions {
  readonly team: string
  readonly table: Table
  readonly drive: Drive
  /** Conditions on the id: the window, and where the page before ended. */
  readonly bounds: ReadonlyArray<Fragment>
  /** Conditions that the index does not decide. */
  readonly residual: ReadonlyArray<Fragment>
  readonly dir: "asc" | "desc"
  readonly limit: number
  /** Ends after as many rows as are looked at together, with nothing found if need be: for who goes on by himself. */
  readonly once?: true
}

/**
 * Rows in the order of their ids, up to one more than the limit. `examinedTo` is null when these are all there are up to
 * the limit; else the scan stopped early: what matches beyond that id is not known yet.
 */
export interface Scanned<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly examinedTo: string | null
}

/**
 * How many rows a scan looks at together. A list with a rare match in a window of millions of rows answers what it has found among so many, with a
 * cursor to go on, instead of reading the window through. While it has found nothing it goes on by itself, each time among twice as many: a page
 * without a row and with a cursor helps nobody. How long that may take is up to the caller's deadline.
 */
const examineAtMost = 10_000
const examineAtOnce = 160_000

/** One page of a table, read along an index and newest first (or oldest first). */
export const scan = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  options: ScanOptions
): Effect.fn.Return<Scanned<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  const { bounds, dir, once, table } = options
  const sql = yield* SqlClient.SqlClient
  const beyond = (id: string) => sql`${sql.literal(`${table.alias}.id ${dir === "desc" ? "<" : ">"}`)} ${id}`
  let examined = examineAtMost
  let part = yield* look<Row>(options, examined)
  if (once === true) return part
  while (part.rows.length === 0 && part.examinedTo !== null) {
    examined = Math.min(2 * examined, examineAtOnce)
    part = yield* look<Row>({ ...options, bounds: [...bounds, beyond(part.examinedTo)] }, examined)
  }
  return part
})

/** The rows among the first so many. */
const look = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  options: ScanOptions,
  examined: number
): Effect.fn.Return<Scanned<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const { bounds, dir, drive, limit, residual, table } = options
  const { alias, name } = table
  const wanted = limit + 1
  const perValue =
    residual.length === 0 ? wanted : Math.max(wanted, Math.floor(examined / Math.max(1, drive.values.length)))
  const order = sql.literal(`order by ${alias}.id ${dir}`)
  const column = sql.literal(`${alias}.${drive.column}`)
  const one = drive.values.length === 1

  const along = (select: string, value: Fragment, tail: Fragment) => sql`
    select ${sql.literal(select)} from ${sql.literal(`${name} ${alias}`)}
    where ${sql.and([
      sql`${column} = ${value}`,
      ...(drive.column === "team_id" ? [] : [sql`${sql.literal(alias)}.team_id = ${options.team}`]),
      ...(drive.condition === undefined ? [] : [drive.condition]),
      ...bounds
    ])}
    ${order} ${tail}`
  // One value: a plain range of its index, in order. Several: the head of each range, merged.
  const over = (inner: (value: Fragment) => Fragment) =>
    one
      ? inner(sql`${drive.values[0]}`)
      : sql`select ${sql.literal(alias)}.* from unnest(${Columns.text(drive.values)}) as value (id)
          cross join lateral (${inner(sql.literal("value.id"))}) ${sql.literal(alias)}`

  const rows = yield* sql<Row>`
    select ${table.columns}
    from (${over((value) => along(`${alias}.*`, value, sql.literal(`limit ${perValue}`)))}) ${sql.literal(alias)}
    ${sql.literal(table.joins)}
    where ${sql.and(residual.length === 0 ? [sql.literal("true")] : residual)}
    ${order} ${sql.literal(`limit ${wanted}`)}`.unprepared
  if (residual.length === 0 || (one && rows.length === wanted)) return { rows, examinedTo: null }

  const ends = yield* sql<{ id: string }>`
    ${over((value) => along(`${alias}.id`, value, sql.literal(`offset ${perValue - 1} limit 1`)))}`.unprepared
  const examinedTo = furthest(ends, dir)
  // What one value has beyond where another's look ended is no part of this: what that other has before it is not known yet.
  return { rows: rows.filter(({ id }) => reaches(id, examinedTo, dir)), examinedTo }
})

/** Of the ids that several scans stopped at, the one that all of them have reached. */
const furthest = (ends: ReadonlyArray<{ readonly id: string }>, dir: "asc" | "desc"): string | null =>
  ends.reduce<string | null>((end, { id }) => (end === null || (dir === "desc" ? id > end : id < end) ? id : end), null)

/** Whether an id is not beyond where a scan ended; null: it has come to the end of all. */
const reaches = (id: string, end: string | null, dir: "asc" | "desc"): boolean =>
  end === null || (dir === "desc" ? id >= end : id <= end)

/** The rows of these ids that meet the conditions, as `scan` answers them. */
export const pick = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  options: Omit<ScanOptions, "drive"> & { readonly ids: ReadonlyArray<string> }
): Effect.fn.Return<Scanned<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  if (options.ids.length === 0) return { rows: [], examinedTo: null }
  const sql = yield* SqlClient.SqlClient
  const { alias, columns, joins, name } = options.table
  const rows = yield* sql<Row>`
    select ${columns} from ${sql.literal(`${name} ${alias}`)} ${sql.literal(joins)}
    where ${sql.and([
      sql`${sql.literal(alias)}.id = any(${Columns.text(options.ids)})`,
      sql`${sql.literal(alias)}.team_id = ${options.team}`,
      ...options.bounds,
      ...options.residual
    ])}
    ${sql.literal(`order by ${alias}.id ${options.dir} limit ${options.limit + 1}`)}`.unprepared
  return { rows, examinedTo: null }
})

/** A page, and the id after which the next one starts; null when there is none. */
export interface Page<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly next: string | null
}

/** Makes one page of several scans over disjoint or overlapping parts of a list. */
export const toPage = <Row extends { readonly id: string }>(
  parts: ReadonlyArray<Scanned<Row>>,
  dir: "asc" | "desc",
  limit: number
): Page<Row> => {
  const end = furthest(
    parts.flatMap(({ examinedTo }) => (examinedTo === null ? [] : [{ id: examinedTo }])),
    dir
  )
  const byId = new Map<string, Row>()
  for (const { rows } of parts) {
    for (const row of rows) if (reaches(row.id, end, dir)) byId.set(row.id, row)
  }
  const sign = dir === "desc" ? -1 : 1
  const rows = [...byId.values()].sort((a, b) => (a.id < b.id ? -sign : sign))
  if (rows.length <= limit) return { rows, next: end }
  return { rows: rows.slice(0, limit), next: rows[limit - 1]!.id }
}
