import { Effect } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

type Fragment = Statement.Fragment

/** The source of a list: a table, its alias in the fragments, and the selected and joined columns of a row. */
export interface Table {
  readonly name: string
  readonly alias: string
  readonly columns: Fragment
  readonly joins: string
}

/** The index that a scan follows: a column that is indexed together with `id`, and the values to look up in it. */
export interface Drive {
  readonly column: string
  readonly values: ReadonlyArray<string>
  /** The condition of a partial index. */
  readonly condition?: Fragment
}

export interface ScanOptions {
  readonly team: string
  readonly table: Table
  readonly drive: Drive
  /** Conditions on the id: the window, and the end of the previous page. */
  readonly bounds: ReadonlyArray<Fragment>
  /** Conditions that the index does not cover. */
  readonly residual: ReadonlyArray<Fragment>
  readonly dir: "asc" | "desc"
  readonly limit: number
  /** Stops after examining one batch of rows, even when none matches: for callers that continue themselves. */
  readonly once?: true
  /** How many rows are examined in the first batch, when each of them costs more than usual. */
  readonly examine?: number
}

/**
 * Rows ordered by id, up to one more than the limit. `examinedTo` is null when the rows up to the limit are complete. Otherwise the scan stopped
 * early at that id, and matches beyond it are not known yet.
 */
export interface Scanned<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly examinedTo: string | null
}

/**
 * How many rows a scan examines at once. When matches are rare in a window of millions of rows, a list returns those among so
 * many rows and a cursor to continue, instead of reading the whole window. While it has found nothing it continues by itself with
 * twice as many rows each time, because a page with a cursor but no row is of no use. The caller's deadline limits how long that
 * takes.
 */
const examineAtMost = 10_000
const examineAtOnce = 160_000

/** One page of a table, read along an index, newest first (or oldest first). */
export const scan = Effect.fnUntraced(function* <Row extends { readonly id: string }>(
  options: ScanOptions
): Effect.fn.Return<Scanned<Row>, SqlError.SqlError, SqlClient.SqlClient> {
  const { bounds, dir, once, table } = options
  const sql = yield* SqlClient.SqlClient
  const beyond = (id: string) => sql`${sql.literal(`${table.alias}.id ${dir === "desc" ? "<" : ">"}`)} ${id}`
  let examined = options.examine ?? examineAtMost
  let part = yield* look<Row>(options, examined)
  if (once === true) return part
  while (part.rows.length === 0 && part.examinedTo !== null) {
    examined = Math.min(2 * examined, examineAtOnce)
    part = yield* look<Row>({ ...options, bounds: [...bounds, beyond(part.examinedTo)] }, examined)
  }
  return part
})

/** The matching rows among the first so many. */
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
  // With one value: a plain range of its index, in order. With several: the beginning of each range, merged.
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
  // Rows of one value beyond the point where the read of another value ended are dropped: rows of that other value before them
  // are not known yet.
  return { rows: rows.filter(({ id }) => reaches(id, examinedTo, dir)), examinedTo }
})

/** The id that all of several scans have reached. */
const furthest = (ends: ReadonlyArray<{ readonly id: string }>, dir: "asc" | "desc"): string | null =>
  ends.reduce<string | null>((end, { id }) => (end === null || (dir === "desc" ? id > end : id < end) ? id : end), null)

/** Whether an id is not beyond the end of a scan; null: the scan is complete. */
const reaches = (id: string, end: string | null, dir: "asc" | "desc"): boolean =>
  end === null || (dir === "desc" ? id >= end : id <= end)

/** The rows of these ids that meet the conditions, in the form that `scan` returns. */
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

/** Merges several scans over disjoint or overlapping parts of a list into one page. */
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
