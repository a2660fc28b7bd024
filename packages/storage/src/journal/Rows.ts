import { PgTypes } from "@effect/sql-pg"
import { Statement } from "effect/sql"
import * as Columns from "./Columns.ts"

/**
 * A column of the rows that a statement is given: its name in the statement, its type, its value in a row, and the columns of the table that it is
 * written to. These are the one of its own name unless they are named; none: the statement needs it for something else.
 */
export type Column<Row> = readonly [
  name: string,
  type: Columns.ColumnType,
  of: (row: Row) => unknown,
  to?: ReadonlyArray<string>
]

/** What is written to a column of a table that the rows do not give: what has the same name in the statement, or expressions by column. */
export type Made = string | Readonly<Record<string, string>>

/** What a table's rows are made of, in their order. */
export type Fields<Row> = ReadonlyArray<Column<Row> | Made>

/** How the rows of a batch are given: one row as plain values, or arrays; `uniform`: the columns that are mostly alike are single values. */
export interface Given {
  readonly single: boolean
  readonly uniform: boolean
}

const single: Given = { single: true, uniform: false }
export const many: Given = { single: false, uniform: false }
const alike: Given = { single: false, uniform: true }

/** The rows of a batch as parameters, and how they are given. */
export interface Bound {
  readonly given: Given
  readonly parameters: ReadonlyArray<PgTypes.Parameter>
}

/** One value of a type. */
const scalars: { readonly [type in Columns.ColumnType]: (value: never) => PgTypes.Parameter } = {
  text: PgTypes.text,
  int2: PgTypes.int2,
  int4: PgTypes.int4,
  int8: PgTypes.int8,
  bool: PgTypes.bool,
  bytea: PgTypes.bytea,
  timestamptz: PgTypes.timestamptz
}

const isColumn = <Row>(field: Column<Row> | Made): field is Column<Row> => Array.isArray(field)

const commas = Statement.join(", ", false)

type Pair = readonly [to: string, expression: string]

/** Columns of a table, each with what is written to it. `of`: what stands before the names of given columns. */
const pairsOf = <Row>(fields: Fields<Row>, of = ""): ReadonlyArray<Pair> =>
  fields.flatMap((field): ReadonlyArray<Pair> => {
    if (typeof field === "string") return [[field, field]]
    if (!isColumn(field)) return Object.entries(field)
    const [name, , , to = [name]] = field
    return to.map((column) => [column, `${of}${name}`])
  })

const insert = (table: string, pairs: ReadonlyArray<Pair>, from: string): string =>
  `insert into ${table} (${pairs.map(([to]) => to).join(", ")})
    select ${pairs.map(([, expression]) => expression).join(", ")}
    from ${from}`

/** A part of a statement: rows of `from` become rows of a table. */
export const insertInto = (table: string, fields: ReadonlyArray<Made>, from: string): string =>
  insert(table, pairsOf(fields), from)

/**
 * The rows that a statement is given, declared once: a column stands in one place, and the types of the parameters, the names in the text, what is
 * bound, and what is written to the rows' own table follow from it.
 */
export class Rows<Row> {
  /** The names of the columns, as the statement lists them. */
  readonly names: string
  /** How many parameters the rows take. */
  readonly width: number
  readonly #alias: string
  readonly #fields: Fields<Row>
  /** Those that have a value for each row, and those that mostly have one for all. */
  readonly #each: ReadonlyArray<Column<Row>>
  readonly #uniform: ReadonlyArray<Column<Row>>

  /**
   * `alias`: the name of the rows in the statement. `uniform`: the columns that have one value in all rows of most batches. Their parameters are the
   * last, in this order.
   */
  constructor(alias: string, fields: Fields<Row>, uniform: ReadonlyArray<string> = []) {
    this.#alias = alias
    this.#fields = fields
    const columns = fields.filter((field) => isColumn(field))
    this.#each = columns.filter(([name]) => !uniform.includes(name))
    this.#uniform = uniform.map((name) => {
      const column = columns.find((one) => one[0] === name)
      if (column === undefined) throw new Error(`${alias} has no column ${name}`)
      return column
    })
    this.names = [...this.#each, ...this.#uniform].map(([name]) => name).join(", ")
    this.width = columns.length
  }

  /**
   * The rows as an item of FROM, of the parameters that `bind` makes of them, which begin with `$first`: an array a column, or, of one row alone,
   * plain values. Those the planner puts where they are used, so that nothing is taken apart, hashed and joined for one row: most commits of a
   * gateway that is not busy are of one. Uniform columns are given as one value, because to take an array apart costs the server more than anything
   * else that it does with most columns.
   */
  from(first: number, { single, uniform }: Given): string {
    const columns = [...this.#each, ...this.#uniform].map(([, type], index) => `$${first + index}::${type}`)
    return `${this.#rows(columns, single, uniform)} as ${this.#alias} (${this.names})`
  }

  #rows(columns: ReadonlyArray<string>, single: boolean, uniform: boolean): string {
    if (single) return `(select ${columns.join(", ")})`
    const arrays = uniform ? this.#each.length : this.width
    const unnested = columns.slice(0, arrays).map((column) => `${column}[]`)
    const rows = `unnest(${unnested.join(", ")})`
    return uniform ? `(select given.*, ${columns.slice(arrays).join(", ")} from ${rows} as given)` : rows
  }

  /** The parameters of these rows; `alone`: as those of one row. */
  bind(rows: ReadonlyArray<Row>, alone = rows.length === 1): Bound {
    const scalar = ([, type, of]: Column<Row>): PgTypes.Parameter => scalars[type](of(rows[0]!) as never)
    const array = ([, type, of]: Column<Row>): PgTypes.Parameter => Columns.column(type, rows.map(of))
    if (alone) return { given: single, parameters: [...this.#each.map(scalar), ...this.#uniform.map(scalar)] }
    const given = this.#isUniform(rows) ? alike : many
    return {
      given,
      parameters: [...this.#each.map(array), ...this.#uniform.map(given.uniform ? scalar : array)]
    }
  }

  /** The rows as an item of FROM of a statement that is a template. `nth`: the name of a last column, which numbers them from 1. */
  unnest(sql: Statement.Constructor, rows: ReadonlyArray<Row>, nth?: string): Statement.Fragment {
    const arrays = commas(this.bind(rows, false).parameters.map((array) => sql`${array}`))
    const as =
      nth === undefined
        ? `as ${this.#alias} (${this.names})`
        : `with ordinality as ${this.#alias} (${this.names}, ${nth})`
    return sql`unnest(${arrays}) ${sql.literal(as)}`
  }

  #isUniform(rows: ReadonlyArray<Row>): boolean {
    if (this.#uniform.length === 0) return false
    return this.#uniform.every(([, , of]) => {
      const value = of(rows[0]!)
      return rows.every((row) => of(row) === value)
    })
  }

  /** A part of a statement: these rows, which `from` has, become rows of their table. `of`: what stands before the names of the columns. */
  insertInto(table: string, from: string, of = ""): string {
    return insert(table, pairsOf(this.#fields, of), from)
  }

  /** What an update of their table sets. */
  get assignments(): string {
    return pairsOf(this.#fields, `${this.#alias}.`)
      .map(([to, expression]) => `${to} = ${expression}`)
      .join(", ")
  }
}

/** The texts of a statement by the shape of batches. Each is built once, when a batch first has its shape, so that PostgreSQL plans it once. */
export const texts = <Shape>(build: (shape: Shape) => string): ((name: string, shape: Shape) => string) => {
  const byName = new Map<string, string>()
  return (name, shape) => {
    let text = byName.get(name)
    if (text === undefined) {
      text = build(shape)
      byName.set(name, text)
    }
    return text
  }
}
