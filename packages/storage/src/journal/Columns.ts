import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

/**
 * Array parameters of a multi-row statement: one PostgreSQL array per column, bound with its element type, so that
 * empty and all-null columns bind like any other.
 */
const of =
  (oid: number) =>
  (values: ReadonlyArray<unknown>): PgTypes.Parameter =>
    Result.getOrThrow(PgTypes.array(values, oid))

export const text = of(PgTypes.OID.text)
export const int4 = of(PgTypes.OID.int4)
export const int8 = of(PgTypes.OID.int8)
export const int2 = of(PgTypes.OID.int2)
export const bool = of(PgTypes.OID.bool)
export const bytea = of(PgTypes.OID.bytea)
/** Unix milliseconds, or null. */
export const timestamptz = of(PgTypes.OID.timestamptz)

const byType = { text, int2, int4, int8, bool, bytea, timestamptz }

/** Types whose values are arrays. Only a single row may have them, because PostgreSQL takes arrays of arrays apart completely. */
export const lists = { "text[]": text, "int8[]": int8, "timestamptz[]": timestamptz }

export type ColumnType = keyof typeof byType | keyof typeof lists

const isList = (type: ColumnType): type is keyof typeof lists => type in lists

/** The array parameter of a column with this type. */
export const column = (type: ColumnType, values: ReadonlyArray<unknown>): PgTypes.Parameter => {
  if (isList(type)) throw new Error(`only a single row has a ${type}`)
  return byType[type](values)
}

/**
 * The smallest and the largest of some ids. A statement that selects rows with `= any(ids)` also has these as bounds: with them
 * the planner skips the partitions of other days, which it cannot do with an array.
 */
export const bounds = (ids: ReadonlyArray<string>): readonly [first: string, last: string] => {
  let first = ids[0] ?? ""
  let last = first
  for (const id of ids) {
    if (id < first) first = id
    else if (id > last) last = id
  }
  return [first, last]
}
