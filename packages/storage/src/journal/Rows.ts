import type { PgTypes } from "@effect/sql-pg"
import * as Columns from "./Columns.ts"

/** A column of the rows that a statement is given: its name in the statement, its type, and its value in a row. */
export type Column<Row> = readonly [name: string, type: Columns.ColumnType, of: (row: Row) => unknown]

/** How the rows of a batch are given: one row as plain values, or arrays, of which the last `uniform` columns are single values. */
export interface Given {
  readonly single: boolean
  readonly uniform: number
}

export const single: Given = { single: true, uniform: 0 }
export const many: Given = { single: false, uniform: 0 }

/** The values of a batch, by column. */
export type ColumnValues = ReadonlyArray<ReadonlyArray<unknown>>

/**
 * The rows that a statement is given, declared once: the types of its parameters, the names in its text, and what is bound follow from the columns, in their order.
 */
export class Rows<Row> {
  /** The names of the columns, as the statement lists them. */
  readonly names: string
  /** How many parameters the rows take. */
  readonly width: number
  readonly #columns: ReadonlyArray<Column<Row>>
  readonly #types: ReadonlyArray<Columns.ColumnType>
  readonly #uniform: number

  /** `uniform`: so many columns, the last ones, have one value in all rows of most batches. */
  constructor(columns: ReadonlyArray<Column<Row>>, uniform = 0) {
    this.#columns = columns
    this.#types = columns.map(([, type]) => type)
    this.#uniform = uniform
    this.names = columns.map(([name]) => name).join(", ")
    this.width = columns.length
  }

  valuesOf(rows: ReadonlyArray<Row>): ColumnValues {
    return this.#columns.map(([, , of]) => rows.map(of))
  }

  /** How these values are given; `alone`: as those of one row. */
  given(values: ColumnValues, alone = values[0]!.length === 1): Given {
    if (alone) return single
    return this.#uniform > 0 && Columns.areUniform(values, this.#uniform)
      ? { single: false, uniform: this.#uniform }
      : many
  }

  /** The rows as an item of FROM, with their names. Their parameters begin with `$first`. */
  from(first: number, { single, uniform }: Given, alias: string): string {
    return `${Columns.rowsFrom(this.#types, first, single, uniform)} as ${alias} (${this.names})`
  }

  bind(values: ColumnValues, { single, uniform }: Given): Array<PgTypes.Parameter> {
    return Columns.bind(this.#types, values, single, uniform)
  }
}
