import type { SqlClient, Statement } from "effect/sql"
import { idBound, prefixes } from "@tidegate/model/Ids"
import { requestFilterOf } from "../reads/Narrowing.ts"
import { conditions } from "../reads/RequestConditions.ts"
import * as Columns from "../journal/Columns.ts"
import type { Row } from "./DataDeletions.ts"
import type { Place } from "./Places.ts"

/* The conditions (SQL) by which rows of a place, under the alias `r`, belong to a deletion. */

type Fragment = Statement.Fragment

/** The encoded forms of the text that a deletion searches for. Null: its filter selects. */
export type Forms = ReadonlyArray<string> | null

const column = (sql: SqlClient.SqlClient, name: string): Fragment => sql.literal(`r.${name}`)

/** Whether the id is among those that were selected. */
export const isTarget = (sql: SqlClient.SqlClient, id: string, expression: string): Fragment =>
  sql`exists (select from data_deletion_targets t where t.deletion_id = ${id} and t.target_id = ${sql.literal(`r.${expression}`)})`

const either = (sql: SqlClient.SqlClient, all: ReadonlyArray<Fragment>): Fragment =>
  all.length === 0 ? sql`false` : sql.or(all)

/** Whether one of the forms is in the row. The row's columns are put together, so that each is decompressed once. */
const hasText = (sql: SqlClient.SqlClient, { bytes, texts }: Place, forms: ReadonlyArray<string>): Fragment => {
  const said = texts.map((name) => `r.${name}::text`).join(", ")
  const held = bytes.map((name) => `coalesce(r.${name}, ''::bytea)`).join(" || ''::bytea || ")
  const all = Columns.text(forms)
  const ofBytes = held === "" ? sql`` : sql`or position(convert_to(form, 'UTF8') in held) > 0`
  return sql`exists (
    select from (select ${sql.literal(said === "" ? "''" : `concat_ws(chr(10), ${said})`)} as said,
        ${sql.literal(held === "" ? "null::bytea" : held)} as held offset 0) m, unnest(${all}) as f (form)
    where strpos(said, form) > 0 ${ofBytes})`
}

/** Whether the record of the id was received within the deletion's time range. */
export const isInWindow = (sql: SqlClient.SqlClient, { filter: { from }, until }: Row, name: string): Fragment => {
  const bounds = (
    prefix: (typeof prefixes)["request" | "workflowRun"]
  ) => sql`(${column(sql, name)} >= ${idBound(prefix, from === undefined ? 0 : Date.parse(from))}
    and ${column(sql, name)} < ${idBound(prefix, until.getTime() + 1)})`
  return sql`(${bounds(prefixes.request)} or ${bounds(prefixes.workflowRun)})`
}

/** Whether the row is what the deletion looks for. */
const matches = (sql: SqlClient.SqlClient, row: Row, place: Place, forms: Forms): Fragment => {
  if (forms !== null) return hasText(sql, place, forms)
  if (place.table !== "requests") return sql`false`
  const { source_id, status, verified } = row.filter
  const narrowing = {
    ...(source_id === undefined ? {} : { source_id }),
    ...(status === undefined ? {} : { status: [status] }),
    ...(verified === undefined ? {} : { verified })
  }
  const all = conditions(sql, requestFilterOf(narrowing)).map(([, condition]) => condition)
  return all.length === 0 ? sql`true` : sql.and(all)
}

/**
 * The ids of requests and runs that the rows of a table select, each with the condition on the row. The first pass searches for the deletion's text
 * or filter. Later passes only follow links, because the searched rows have not changed.
 */
export const selectedBy = (
  sql: SqlClient.SqlClient,
  row: Row,
  place: Place,
  forms: Forms
): ReadonlyArray<{ readonly id: Fragment; readonly when: Fragment }> => [
  ...(row.pass === 1 && place.root !== null && place.isCopy !== true
    ? [
        {
          id: column(sql, place.root),
          when: sql`${isInWindow(sql, row, place.root)} and ${matches(sql, row, place, forms)}`
        }
      ]
    : []),
  ...(place.links ?? []).map(([of, made]) => ({ id: sql.literal(`r.${made}`), when: isTarget(sql, row.id, of) }))
]

/** Whether the row is to be deleted (or cleared), and is not yet. */
export const isDoomed = (sql: SqlClient.SqlClient, row: Row, place: Place, forms: Forms): Fragment => {
  const { also = [], clears, isCopy, root } = place
  const named = [...(root === null ? [] : [root]), ...also].map((name) => isTarget(sql, row.id, name))
  const own =
    place.table === "idempotency_keys"
      ? [sql`r.begun_at <= ${row.confirmed_at ?? row.requested_at}`]
      : isCopy === true && forms !== null
        ? [hasText(sql, place, forms)]
        : []
  const doomed = either(sql, [...named, ...own])
  return clears === undefined ? doomed : sql`(${sql.literal(`r.${clears[1]}`)} and ${doomed})`
}
