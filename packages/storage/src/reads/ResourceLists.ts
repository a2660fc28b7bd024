import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import type { AnyResource } from "@tidegate/resources/Resource"
import * as Columns from "../journal/Columns.ts"
import { largestPage } from "./PageSize.ts"

/** The filter and order of a list of resources. Empty lists do not filter. */
export interface ResourceQuery {
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
  readonly limit: number
}

interface Found<Row> {
  readonly rows: ReadonlyArray<Row>
  readonly hasMore: boolean
}

/** The rows of a page. `weight` gives the size of the record of a row `t`. */
export const listRows = Effect.fnUntraced(function* <Row extends object>(
  sql: SqlClient.SqlClient,
  { outline = ["*"], plural, weight }: Pick<AnyResource, "outline" | "plural" | "weight">,
  team: string,
  query: ResourceQuery,
  more: ReadonlyArray<Statement.Fragment>
): Effect.fn.Return<Found<Row>, SqlError.SqlError> {
  const { among, dir, ids, includeDisabled, limit, name, orderBy, paused, search } = query
  const order = `order by t.${orderBy} ${dir}, t.id ${dir}`
  // One row more than the limit shows that there are more. Rows are weighed one after the other, and none after the last one of
  // the page: large values are stored separately, and weighing reads them.
  const weighed = (place: string) => sql`
    cross join lateral (
      select (${sql.literal(weight)})::bigint as weight from ${sql(plural)} t where t.id = ids[${sql.literal(place)}] offset 0
    ) w`
  const found = yield* sql<Row & { readonly place: number; readonly listed: number }>`
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
    select ${sql.literal(outline.map((column) => `t.${column}`).join(", "))}, p.place, cardinality(ids)::int4 as listed
    from page p cross join listed join ${sql(plural)} t on t.id = ids[p.place]
    order by p.place`
  return { rows: found, hasMore: (found[0]?.listed ?? 0) > found.length }
})

export interface ResourcePage<Model> {
  readonly pagination: { readonly order_by: string; readonly dir: "asc" | "desc"; readonly limit: number }
  readonly count: number
  readonly has_more: boolean
  readonly models: ReadonlyArray<Model>
}

export const pageOf = <Row, Model, E, R>(
  { dir, limit, orderBy }: ResourceQuery,
  { hasMore, rows }: Found<Row>,
  toModels: (rows: ReadonlyArray<Row>) => Effect.Effect<ReadonlyArray<Model>, E, R>
): Effect.Effect<ResourcePage<Model>, E, R> =>
  Effect.map(toModels(rows), (models) => ({
    pagination: { order_by: orderBy, dir, limit },
    count: models.length,
    has_more: hasMore,
    models
  }))
