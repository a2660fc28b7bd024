import { Effect, Result } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { type Listed, listed as listedAs } from "@tidegate/model/Lists"
import type { AnyResource } from "@tidegate/resources/Resource"
import * as Columns from "../journal/Columns.ts"
import type { Position } from "./Cursor.ts"
import { largestPage } from "./PageSize.ts"
import { cursorAfter, type PageRequest, positionOf } from "./Paging.ts"

/** The filters and the order of a list of resources. Empty lists are no filter. */
export interface ResourceQuery extends PageRequest {
  readonly ids: ReadonlyArray<string>
  readonly name: string | undefined
  readonly type: string | undefined
  readonly includeDisabled: boolean
  readonly paused: boolean | undefined
  /** Part of a name; case does not matter. */
  readonly search?: string
  /** Ids of other resources by column, or the allowed words of a column. */
  readonly among: { readonly [column: string]: ReadonlyArray<string> }
  /** Whether records show counts, which need a read of their own. */
  readonly counts: boolean
  readonly orderBy: "name" | "created_at" | "updated_at"
  readonly dir: "asc" | "desc"
}

type Start = Pick<Position, "id" | "value">

interface Found<Row> {
  readonly rows: ReadonlyArray<Row>
  /** The last row, when there are more behind it. */
  readonly last: Start | null
}

/** The end of the previous page. Times are in microseconds, as PostgreSQL stores them. */
const startOf = (query: ResourceQuery): Result.Result<Required<Start> | null, GatewayError> =>
  Result.flatMap(positionOf(query), (position) => {
    if (position === null) return Result.succeed(null)
    const { id, value } = position
    return value !== undefined && (query.orderBy === "name" || /^\d{1,16}$/.test(value))
      ? Result.succeed({ id, value })
      : Result.fail(fail("INVALID_CURSOR", "the cursor is not one that a list returned"))
  })

/**
 * The rows of a page. `weight`: an SQL expression for the size of a record over a row `t`. `more`: conditions beyond the query.
 */
export const listRows = Effect.fnUntraced(function* <Row extends object>(
  sql: SqlClient.SqlClient,
  { outline = ["*"], plural, weight }: Pick<AnyResource, "outline" | "plural" | "weight">,
  team: string,
  query: ResourceQuery,
  more: ReadonlyArray<Statement.Fragment>
): Effect.fn.Return<Found<Row>, GatewayError | SqlError.SqlError> {
  const start = yield* Effect.fromResult(startOf(query))
  const { among, dir, ids, includeDisabled, limit, name, orderBy, paused, search } = query
  const order = `order by t.${orderBy} ${dir}, t.id ${dir}`
  const beyond = sql.literal(dir === "asc" ? ">" : "<")
  const [ordered, read] =
    orderBy === "name"
      ? [sql.literal("t.name"), (value: string) => sql`${value}`]
      : [
          sql.literal(`(extract(epoch from t.${orderBy}) * 1000000)::bigint::text`),
          (value: string) => sql`timestamptz 'epoch' + ${value}::bigint * interval '1 microsecond'`
        ]
  // One row beyond the limit shows that there are more. Rows are weighed one after the other, and none after the last of the page,
  // because weighing reads large values, which are stored apart.
  const weighed = (place: string) => sql`
    cross join lateral (
      select (${sql.literal(weight)})::bigint as weight from ${sql(plural)} t where t.id = ids[${sql.literal(place)}] offset 0
    ) w`
  const found = yield* sql<Row & { readonly id: string; readonly listed: number; readonly ordered_by: string }>`
    with recursive listed as materialized (
      select array(
        select t.id from ${sql(plural)} t
        where ${sql.and([
          sql`t.team_id = ${team}`,
          sql.literal("t.deleted_at is null"),
          ...(ids.length === 0 ? [] : [sql`t.id = any(${Columns.text(ids)})`]),
          ...(name === undefined ? [] : [sql`t.name = ${name}`]),
          ...(search === undefined ? [] : [sql`strpos(lower(t.name), lower(${search})) > 0`]),
          ...(includeDisabled ? [] : [sql.literal("t.disabled_at is null")]),
          ...(paused === undefined ? [] : [sql.literal(`t.paused_at is ${paused ? "not " : ""}null`)]),
          ...Object.entries(among).flatMap(([column, values]) =>
            values.length === 0 ? [] : [sql`t.${sql(column)} = any(${Columns.text(values)})`]
          ),
          ...(start === null ? [] : [sql`(t.${sql(orderBy)}, t.id) ${beyond} (${read(start.value)}, ${start.id})`]),
          ...more
        ])}
        ${sql.literal(`${order} limit ${limit + 1}`)}
      ) as ids
    ), page as (
      select 1 as place, w.weight from listed ${weighed("1")}
      union all
      select p.place + 1, p.weight + w.weight from page p cross join listed ${weighed("p.place + 1")}
      where p.place < ${sql.literal(String(limit))} and p.weight + w.weight <= ${sql.literal(String(largestPage))}
    )
    select ${sql.literal(outline.map((column) => `t.${column}`).join(", "))}, cardinality(ids)::int4 as listed, ${ordered} as ordered_by
    from page p cross join listed join ${sql(plural)} t on t.id = ids[p.place]
    order by p.place`
  const last = found.at(-1)
  const isLast = last === undefined || last.listed === found.length
  return { rows: found, last: isLast ? null : { id: last.id, value: last.ordered_by } }
})

export interface ResourcePage<Model> extends Listed<Model> {
  readonly pagination: { readonly order_by: string; readonly dir: "asc" | "desc"; readonly limit: number }
}

/** The answer of these rows, as they are shown. */
export const resourcePage = <Model>(
  { dir, key, limit, orderBy }: ResourceQuery,
  { last }: Found<unknown>,
  models: ReadonlyArray<Model>
): ResourcePage<Model> => ({
  pagination: { order_by: orderBy, dir, limit },
  ...listedAs(models, cursorAfter(key, last))
})
