import type { SqlClient, Statement } from "effect/sql"
import { idBound, type Prefix } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { Stretch } from "./Window.ts"

/** The buckets of a series: `steps` of them, each `step` long (ms), starting at `from`. */
export interface Buckets extends Stretch {
  readonly step: number
}

/** The number of buckets. */
export const stepsOf = ({ from, step, to }: Buckets): number => Math.round((to - from) / step)

/** An SQL expression, and the joins that it needs. */
export interface Bucketed {
  readonly joins: Statement.Fragment
  readonly bucket: Statement.Fragment
}

/** With at most this many buckets, a row's bucket is found in one step. */
const fewBuckets = 64

/**
 * An SQL expression for the bucket of an id. It compares the times in ids, which no time zone affects. The database searches text
 * arrays linearly, so many buckets are searched in two steps, first among groups: with 3,000 buckets a row needs 110 comparisons.
 */
export const bucketOf = (
  sql: SqlClient.SqlClient,
  id: Statement.Fragment,
  prefix: Prefix,
  buckets: Buckets
): Bucketed => {
  const { from, step } = buckets
  const steps = stepsOf(buckets)
  const starts = Array.from({ length: steps }, (_, n) => idBound(prefix, from + n * step))
  const within = (bounds: Statement.Fragment) => sql`width_bucket(${id}, ${bounds} collate "C")`
  if (steps <= fewBuckets) return { joins: sql.literal(""), bucket: within(sql`${Columns.text(starts)}`) }
  const size = Math.ceil(Math.sqrt(steps))
  const groups = Array.from({ length: Math.ceil(steps / size) }, (_, n) => starts.slice(n * size, (n + 1) * size))
  return {
    // "offset 0" keeps the planner from computing each again wherever it is used.
    joins: sql`
      cross join lateral (select ${within(sql`${Columns.text(groups.map(([first]) => first!))}`)} as n offset 0) bucket_group
      join (
        select n, string_to_array(starts, ' ') as starts
        from unnest(${Columns.text(groups.map((of) => of.join(" ")))}) with ordinality as g (starts, n) offset 0
      ) grouped on grouped.n = bucket_group.n`,
    bucket: sql`((bucket_group.n - 1) * ${size}::int4 + ${within(sql.literal("grouped.starts"))})`
  }
}
