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

/** One value of a type. */
const scalars: { readonly [type in ColumnType]: (value: never) => PgTypes.Parameter } = {
  text: PgTypes.text,
  int2: PgTypes.int2,
  int4: PgTypes.int4,
  int8: PgTypes.int8,
  bool: PgTypes.bool,
  bytea: PgTypes.bytea,
  timestamptz: PgTypes.timestamptz
}

export type ColumnType = keyof typeof byType

/** The array of a column of that type. */
export const column = (type: ColumnType, values: ReadonlyArray<unknown>): PgTypes.Parameter => byType[type](values)

/**
 * The rows of a statement as its FROM item, of the parameters that `bind` makes of them: an array a column, or, of one row alone,
 * plain values. Those the planner puts where they are used, so that nothing is taken apart, hashed and joined for one row: most
 * commits of a gateway that is not busy are of one. `uniform`: so many of the last columns have one value in all rows, and are
 * given as that: to take an array apart costs the server more than anything else that it does with most columns.
 */
export const rowsFrom = (types: ReadonlyArray<ColumnType>, from: number, single: boolean, uniform = 0): string => {
  const values = types.map((type, index) => `$${from + index}::${type}`)
  if (single) return `(select ${values.join(", ")})`
  const arrays = types.length - uniform
  const rows = `unnest(${placeholders(types.slice(0, arrays), from)})`
  return uniform === 0 ? rows : `(select given.*, ${values.slice(arrays).join(", ")} from ${rows} as given)`
}

export const bind = (
  types: ReadonlyArray<ColumnType>,
  columns: ReadonlyArray<ReadonlyArray<unknown>>,
  single: boolean,
  uniform = 0
): Array<PgTypes.Parameter> =>
  columns.map((values, index) => {
    const type = types[index]!
    return single || index >= columns.length - uniform ? scalars[type](values[0] as never) : column(type, values)
  })

/** Whether each of the last `count` columns has one value in all rows. */
export const areUniform = (columns: ReadonlyArray<ReadonlyArray<unknown>>, count: number): boolean =>
  columns.slice(columns.length - count).every((values) => values.every((value) => value === values[0]))

/** `$from::text[], …` for a statement's text. */
export const placeholders = (types: ReadonlyArray<string>, from: number): string =>
  types.map((type, index) => `$${from + index}::${type}[]`).join(", ")

/**
 * The least and the greatest of some ids. A statement that names the rows it wants by `= any(ids)` names these too: by them the
 * planner knows the days that it need not look into, which it cannot by an array.
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
