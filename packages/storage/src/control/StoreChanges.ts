import { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { GatewayError } from "@tidegate/model/GatewayError"
import type { AnyResource } from "@tidegate/resources/Resource"
import type { Owner } from "../secrets/SealedColumn.ts"
import { isBeyondMargin, isFarFromLimit, takePlace } from "../teams/TeamCounts.ts"
import { overtaken, query, transaction } from "../Transaction.ts"
import {
  type Command,
  type Concerned,
  type Failure,
  type HeldRows,
  nobody,
  noRows,
  type Special,
  type StoredRow,
  type Values
} from "./Store.ts"
import { lately, now, storedRows } from "./StoredRows.ts"

/** A change that is committed, or about to be. */
export interface Committed<Row> {
  readonly row: Row
  readonly concerned: Concerned
  /** Whether it was just created: then all its counts are zero. */
  readonly isNew?: boolean
}

/** How the rows of a resource are created and changed. `limit`: of the rows of one team. */
export const storeChanges = <Row extends StoredRow, R extends AnyResource>(
  sql: SqlClient.SqlClient,
  resource: R,
  special: Special<Row, R>,
  limit: number
) => {
  const table = sql(resource.plural)
  const { claimName, present, read } = storedRows<Row>(sql, resource)

  const concerns = (row: Row) => special.concerns?.(row) ?? Effect.succeed(nobody)
  const prepared = (owner: Owner, before: Row | null, next: Values): Effect.Effect<Values | null, Failure> =>
    special.prepare?.(owner, before, next) ?? Effect.succeed(next)
  const followed = Effect.fnUntraced(function* (before: Row | null, after: Row, at: Date, { by = null }: Command) {
    const concerned = special.follow === undefined ? nobody : yield* special.follow(before, after, at, by)
    return { row: after, concerned, isNew: before === null }
  })

  /** Null: it conflicts with what is stored, or something that it depends on is missing. */
  const insert = Effect.fnUntraced(function* (
    owner: Owner,
    next: Values,
    command: Command,
    at: Date,
    held: HeldRows | typeof noRows = noRows,
    mayInsert = sql`true`
  ): Effect.fn.Return<Committed<Row> | null, Failure> {
    const { id, team_id } = owner
    const values = yield* prepared(owner, null, next)
    const stamps = { recent_commands: lately(command, []), created_at: at, updated_at: at }
    const written = Object.entries({ id, team_id, ...values, ...stamps })
    const areThere = held === noRows ? sql`true` : held.areThere
    const made = sql`
      insert into ${table} (${sql.csv(written.map(([column]) => sql`${sql(column)}`))})
      select ${sql.csv(written.map(([, value]) => sql`${value}`))} where ${mayInsert} and ${areThere}
      on conflict do nothing returning *`
    const [created] = yield* held === noRows
      ? sql<Row>`${made}`
      : sql<Row>`with ${held.rows}, made as (${made}), concerning as (${held.concerned}) select * from made`
    return created === undefined ? null : yield* followed(null, created, at, command)
  })

  /** A create in one statement, if the resource allows it and its team is far from the limit; null: it takes a transaction. */
  const insertAlone = (owner: Owner, next: Values, at: Date, command: Command) => {
    const { team_id } = owner
    const held =
      special.alone === undefined ? (special.hold === undefined ? noRows : null) : special.alone(team_id, next)
    return held === null || !isBeyondMargin(limit)
      ? Effect.succeed(null)
      : query(insert(owner, next, command, at, held, isFarFromLimit(sql, team_id, resource.plural, limit)))
  }

  const create = Effect.fnUntraced(function* (
    owner: Owner,
    next: Values,
    at: Date,
    command: Command
  ): Effect.fn.Return<Committed<Row>, GatewayError> {
    const alone = yield* insertAlone(owner, next, at, command)
    if (alone !== null) return alone
    const { id, team_id } = owner
    return yield* transaction(sql)(
      Effect.gen(function* () {
        if (special.hold !== undefined) yield* special.hold(team_id, null, next)
        yield* takePlace(sql, resource.plural, owner)
        const created = yield* insert(owner, next, command, at)
        if (created !== null) return created
        yield* claimName(owner, next["name"])
        const [stored] = yield* sql<Row>`select * from ${table} where id = ${id} and team_id = ${team_id}`
        if (stored === undefined) return yield* overtaken("the conflicting row is gone")
        return { row: yield* present(stored), concerned: yield* concerns(stored) }
      })
    )
  })

  /** Changes a row by what `decide` returns: null is no change. */
  const advance = Effect.fnUntraced(function* (
    owner: Owner,
    command: Command,
    decide: (row: Row, at: Date) => Effect.Effect<Values | null, Failure>
  ): Effect.fn.Return<Committed<Row>, Failure> {
    const { id, team_id } = owner
    const row = yield* read(team_id, id, special.hold === undefined ? "lock" : "look")
    // Also for a deleted row: a repeated delete has been carried out.
    if (command.id !== undefined && row.recent_commands.includes(command.id)) {
      return { row, concerned: yield* concerns(row) }
    }
    yield* present(row)
    const at = yield* now
    const next = yield* decide(row, at)
    if (next === null) return { row, concerned: yield* concerns(row) }
    if (special.hold !== undefined) {
      yield* special.hold(team_id, row, next)
      const locked = yield* read(team_id, id, "lock")
      if (locked.revision !== row.revision) return yield* overtaken(`the ${resource.name} has changed`)
    }
    if (next["name"] !== undefined && next["name"] !== row.name) yield* claimName(owner, next["name"])
    const stamps = { recent_commands: lately(command, row.recent_commands), updated_at: at }
    const written = yield* prepared(owner, row, next)
    if (written === null) return { row, concerned: yield* concerns(row) }
    const values = { ...written, ...stamps }
    const assignments = Object.entries(values).map(([column, value]) => sql`${sql(column)} = ${value}`)
    const [after] = yield* sql<Row>`update ${table} set ${sql.csv(assignments)} where id = ${id} returning *`
    return yield* followed(row, after ?? row, at, command)
  })

  return { create, advance }
}
