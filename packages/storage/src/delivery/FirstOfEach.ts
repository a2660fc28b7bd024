import type { Statement } from "effect/sql"
import * as Columns from "../journal/Columns.ts"

/** A queue: a table whose rows belong to a shard and to those that wait in it. */
interface Queue {
  readonly table: string
  /** The columns that say whose row it is, as its index has them after `shard`. */
  readonly of: ReadonlyArray<string>
  /** The column by which the rows of one are ordered; in the same index. */
  readonly order: string
  /** The column that the result has of the first row. */
  readonly shows: string
}

/**
 * A recursive part of a statement, `name (shard, <of>, <shows>)`: the first row of each that has rows in these shards. A loose index scan:
 * one probe for each of them, however many rows it has. `where`: a condition on rows of `q`.
 */
export const firstOfEach = (
  sql: Statement.Constructor,
  name: string,
  shards: ReadonlyArray<number>,
  { of, order, shows, table }: Queue,
  where: Statement.Fragment = sql.literal("true")
): Statement.Fragment => {
  const columns = (alias: string, names: ReadonlyArray<string>) =>
    names.map((column) => `${alias}.${column}`).join(", ")
  const shown = ["shard", ...of, shows]
  const first = (condition: string) =>
    sql`select ${sql.literal(columns("q", shown))} from ${sql.literal(table)} q
        where ${sql.literal(condition)} and ${where}
        order by ${sql.literal(columns("q", ["shard", ...of, order]))} limit 1`
  return sql`${sql.literal(name)} as (
      select ${sql.literal(columns("first", shown))}
      from unnest(${Columns.int2(shards)}) as s (shard) cross join lateral (
        ${first("q.shard = s.shard")}
      ) first
      union all
      select ${sql.literal(columns("next", shown))}
      from ${sql.literal(name)} cross join lateral (
        ${first(`q.shard = ${name}.shard and (${columns("q", of)}) > (${columns(name, of)})`)}
      ) next
    )`
}

/** The queue of runs of workflows. */
export const runQueue: Queue = { table: "workflow_queue", of: ["workflow_id"], order: "due_at", shows: "due_at" }
