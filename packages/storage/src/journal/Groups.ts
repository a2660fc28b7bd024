import type { PgTypes } from "@effect/sql-pg"
import type { Given, Rows } from "./Rows.ts"

/** The groups in which a batch has rows, in order, and the form of each. */
export type Present<Group> = ReadonlyArray<readonly [group: Group, given: Given]>

interface BoundGroups<Group> {
  readonly present: Present<Group>
  /** The same as a string, for the cache of texts. */
  readonly name: string
  readonly parameters: ReadonlyArray<PgTypes.Parameter>
}

/** Input rows of several kinds for one statement. A batch may have no rows of a kind; then the statement omits that part. */
export class Groups<Of> {
  readonly #rows: { readonly [group in keyof Of]: Rows<Of[group]> }
  readonly #names: ReadonlyArray<keyof Of & string>

  constructor(rows: { readonly [group in keyof Of]: Rows<Of[group]> }) {
    this.#rows = rows
    this.#names = Object.keys(rows) as Array<keyof Of & string>
  }

  /** An empty list for each group. */
  lists(): { readonly [group in keyof Of]: Array<Of[group]> } {
    return Object.fromEntries(this.#names.map((name) => [name, []])) as never
  }

  /** The parameters of all rows. `isAlone`: whether a group has the form of a single row. */
  bind(
    lists: { readonly [group in keyof Of]: ReadonlyArray<Of[group]> },
    isAlone: (group: keyof Of) => boolean
  ): BoundGroups<keyof Of & string> {
    const present: Array<readonly [keyof Of & string, Given]> = []
    const parameters: Array<PgTypes.Parameter> = []
    let name = ""
    for (const group of this.#names) {
      if (lists[group].length === 0) continue
      const bound = this.#rows[group].bind(lists[group], isAlone(group))
      present.push([group, bound.given])
      name += `${group} ${bound.given.single} ${bound.given.uniform} `
      for (const parameter of bound.parameters) parameters.push(parameter)
    }
    return { present, name, parameters }
  }

  /** The rows of each group as an item of FROM, and the number of the next parameter. */
  from(present: Present<keyof Of & string>): {
    readonly rows: ReadonlyMap<keyof Of, string>
    readonly next: number
  } {
    const rows = new Map<keyof Of, string>()
    let next = 1
    for (const [group, given] of present) {
      rows.set(group, this.#rows[group].from(next, given))
      next += this.#rows[group].width
    }
    return { rows, next }
  }
}
