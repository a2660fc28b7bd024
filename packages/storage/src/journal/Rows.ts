import { PgTypes } from "@effect/sql-pg"
import { Statement } from "effect/sql"
import * as Columns from "./Columns.ts"

/**
 * A column of a statement's input rows: its name in the statement, its type, its value in a row, and the columns of the table
 * that it is written to (default: the one with its name). An empty list: it is not written; the statement needs it for
 * something else.
 */
export type Column<Row> = readonly [
  name: string,
  type: Columns.ColumnType,
  of: (row: Row) => unknown,
  to?: ReadonlyArray<string>
]

/**
 * A value for table columns that is not in the input rows: a column of the statement with the same name, or SQL expressions by
 * column.
 */
export type Made = string | Readonly<Record<string, string>>

/** The columns of a table's rows, in order. */
export type Fields<Row> = ReadonlyArray<Column<Row> | Made>

/**
 * The form of a batch's input: one row as scalar values, or arrays. `uniform`: how many of the sets of uniform columns are scalars,
 * because each of their columns has one value in all rows.
 */
export interface Given {
  readonly single: boolean
  readonly uniform: number
}

const single: Given = { single: true, uniform: 0 }
export const many: Given = { single: false, uniform: 0 }

/** The parameters of a batch, and their form. */
export interface Bound {
  readonly given: Given
  readonly parameters: ReadonlyArray<PgTypes.Parameter>
}

/** A parameter of each type for a single row. */
const scalars: { readonly [type in Columns.ColumnType]: (value: never) => PgTypes.Parameter } = {
  ...Columns.lists,
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

/** The columns of a table with the expression for each. `of`: a prefix for the names of input columns. */
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

/** A part of a statement that inserts the rows of `from` into a table. */
export const insertInto = (table: string, fields: ReadonlyArray<Made>, from: string): string =>
  insert(table, pairsOf(fields), from)

/**
 * The input rows of a statement, declared once: each column is in one place. The types of the parameters, the names in the
 * text, the bound values and the insert list are derived from it.
 */
export class Rows<Row> {
  /** The names of the columns, as the statement lists them. */
  readonly names: string
  /** How many parameters the rows take. */
  readonly width: number
  readonly #alias: string
  readonly #fields: Fields<Row>
  /** Columns with a value for each row, and then the sets of uniform columns, the first set last: scalars are always at the end. */
  readonly #columns: ReadonlyArray<Column<Row>>
  readonly #uniform: ReadonlyArray<ReadonlyArray<Column<Row>>>

  /**
   * `alias`: the name of the rows in the statement. `uniform`: sets of columns that have one value in all rows of many batches, those of
   * most batches first. A set counts only together with the sets before it, so that there are few texts of a statement.
   */
  constructor(alias: string, fields: Fields<Row>, ...uniform: ReadonlyArray<ReadonlyArray<string>>) {
    this.#alias = alias
    this.#fields = fields
    const columns = fields.filter((field) => isColumn(field))
    this.#uniform = uniform.map((names) =>
      names.map((name) => {
        const column = columns.find((one) => one[0] === name)
        if (column === undefined) throw new Error(`${alias} has no column ${name}`)
        return column
      })
    )
    const sets = this.#uniform.toReversed().flat()
    this.#columns = [...columns.filter((column) => !sets.includes(column)), ...sets]
    this.names = this.#columns.map(([name]) => name).join(", ")
    this.width = columns.length
  }

  /**
   * The rows as an item of FROM. Their parameters are made by `bind`, and begin with `$first`: an array for each column, or
   * scalars for a single row. The planner inlines scalars, so a single row needs no unnest, hash or join; most commits of a
   * gateway with little load have one row. Uniform columns are scalars, because unnesting an array costs the server more than
   * anything else that it does with most columns.
   */
  from(first: number, { single, uniform }: Given): string {
    const columns = this.#columns.map(([, type], index) => `$${first + index}::${type}`)
    return `${this.#rows(columns, single, uniform)} as ${this.#alias} (${this.names})`
  }

  #rows(columns: ReadonlyArray<string>, single: boolean, uniform: number): string {
    if (single) return `(select ${columns.join(", ")})`
    const arrays = this.#arrays(uniform)
    const unnested = columns.slice(0, arrays).map((column) => `${column}[]`)
    const rows = `unnest(${unnested.join(", ")})`
    return uniform > 0 ? `(select given.*, ${columns.slice(arrays).join(", ")} from ${rows} as given)` : rows
  }

  /** How many columns are arrays when so many sets are scalars. */
  #arrays(uniform: number): number {
    return this.#uniform.slice(0, uniform).reduce((columns, set) => columns - set.length, this.width)
  }

  /** The parameters of these rows; `alone`: in the form of a single row. */
  bind(rows: ReadonlyArray<Row>, alone = rows.length === 1): Bound {
    const scalar = ([, type, of]: Column<Row>): PgTypes.Parameter => scalars[type](of(rows[0]!) as never)
    const array = ([, type, of]: Column<Row>): PgTypes.Parameter => Columns.column(type, rows.map(of))
    if (alone) return { given: single, parameters: this.#columns.map(scalar) }
    const uniform = this.#uniformSets(rows)
    const arrays = this.#arrays(uniform)
    return {
      given: { single: false, uniform },
      parameters: this.#columns.map((column, index) => (index < arrays ? array(column) : scalar(column)))
    }
  }

  /**
   * The rows as an item of FROM in a template statement. `nth`: the name of an additional last column, which numbers the rows
   * from 1.
   */
  unnest(sql: Statement.Constructor, rows: ReadonlyArray<Row>, nth?: string): Statement.Fragment {
    const arrays = commas(this.bind(rows, false).parameters.map((array) => sql`${array}`))
    const as =
      nth === undefined
        ? `as ${this.#alias} (${this.names})`
        : `with ordinality as ${this.#alias} (${this.names}, ${nth})`
    return sql`unnest(${arrays}) ${sql.literal(as)}`
  }

  /** How many sets have one value in each column, with all sets before them. */
  #uniformSets(rows: ReadonlyArray<Row>): number {
    const isUniform = ([, , of]: Column<Row>): boolean => {
      const value = of(rows[0]!)
      return rows.every((row) => of(row) === value)
    }
    const end = this.#uniform.findIndex((set) => !set.every(isUniform))
    return end === -1 ? this.#uniform.length : end
  }

  /**
   * A part of a statement that inserts these rows, read from `from`, into their table. `of`: a prefix for the names of the
   * columns.
   */
  insertInto(table: string, from: string, of = ""): string {
    return insert(table, pairsOf(this.#fields, of), from)
  }

  /** The assignments of an update of their table. */
  get assignments(): string {
    return pairsOf(this.#fields, `${this.#alias}.`)
      .map(([to, expression]) => `${to} = ${expression}`)
      .join(", ")
  }
}

/**
 * The texts of a statement, by the shape of batches. A text is built once, when a batch first has its shape, so PostgreSQL
 * plans it once.
 */
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
