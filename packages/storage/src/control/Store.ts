import { Clock, Effect, Result, type Schema } from "effect"
import { SqlClient, type SqlError, type Statement } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import {
  type AnyResource,
  type ChangeOf,
  type FieldsOf,
  type RecordOf,
  type SwitchOf,
  switches,
  type Switch
} from "@tidegate/resources/Resource"
import { TeamLimits } from "@tidegate/resources/TeamLimits"
import type { PendingOf } from "../delivery/CancelPending.ts"
import { listRows, resourcePage, type ResourcePage, type ResourceQuery } from "../reads/ResourceLists.ts"
import { type Owner, sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { isBeyondMargin, isFarFromLimit, takePlace } from "../teams/TeamCounts.ts"
import { overtaken, query, transaction } from "../Transaction.ts"

/** The common columns of every resource. */
export interface StoredRow extends Owner {
  readonly name: string
  /** The ids of the commands that wrote it last, the latest first. */
  readonly recent_commands: ReadonlyArray<string>
  readonly deleted_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** Values by column. A fragment is an SQL expression over the row. */
export interface Values {
  readonly [column: string]: unknown
}

/** Whom a committed change concerns beside the resource itself. */
export interface Concerned {
  /** Destinations whose deliveries use it. */
  readonly destinations: ReadonlyArray<string>
  /** Resources whose pending events have just become CANCELLED. */
  readonly cancelled: ReadonlyArray<PendingOf>
}

/** How records are shown. */
export interface Shown {
  /** With counts, which need a read of their own. */
  readonly counts: boolean
  /** In the form for lists, which may have less. */
  readonly listed?: boolean
}

export const nobody: Concerned = { destinations: [], cancelled: [] }

/** The circumstances of a change. */
export interface Command {
  /**
   * The caller makes it once. When a command that wrote the row recently is repeated, it changes nothing and returns what is
   * stored.
   */
  readonly id?: string | undefined
  /** The user who asks. */
  readonly by?: string | null | undefined
  /** What has to follow the commit. It runs before the answer is read, and so even when that read fails. */
  readonly settle?: (concerned: Concerned) => Effect.Effect<void, GatewayError>
}

/**
 * Commands that a row remembers. A repetition comes within seconds, when its connection breaks; no more commands than these come
 * in between.
 */
const maxRemembered = 16

const lately = ({ id }: Command, before: ReadonlyArray<string>): ReadonlyArray<string> =>
  id === undefined ? before : [id, ...before].slice(0, maxRemembered)

type Failure = GatewayError | SqlError.SqlError

/**
 * The rows of one resource, for one team at a time. Every change is one transaction; its answer is read after the commit. A
 * switch that is already in the requested position writes nothing.
 */
export interface Store<R extends AnyResource> {
  readonly get: (team_id: string, id: string) => Effect.Effect<RecordOf<R>, GatewayError>
  /** The id of the resource with that name (and these values), or null. */
  readonly findByName: (team_id: string, name: string, of?: Values) => Effect.Effect<string | null, GatewayError>
  /** Converts rows to records, in the same order. */
  readonly records: (
    rows: ReadonlyArray<StoredRow>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  readonly list: (team_id: string, query: ResourceQuery) => Effect.Effect<ResourcePage<RecordOf<R>>, GatewayError>
  /** A repeated create with the same id changes nothing and returns what is stored. */
  readonly create: (
    team_id: string,
    id: string,
    fields: FieldsOf<R>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  /** `change` gets what is stored, and may be called more than once. */
  readonly update: (
    team_id: string,
    id: string,
    change: (stored: FieldsOf<R>) => Result.Result<ChangeOf<R>, GatewayError>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  readonly turn: (
    team_id: string,
    id: string,
    to: SwitchOf<R>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  /** Returns what there is to add beside its id, if anything. */
  readonly delete: (
    team_id: string,
    id: string,
    command?: Command
  ) => Effect.Effect<Schema.JsonObject | undefined, GatewayError>
}

/** The rows that a create depends on, as parts of its insert statement. */
export interface HeldRows {
  /** Locks them. */
  readonly rows: Statement.Fragment
  /** Whether all of them exist. */
  readonly areThere: Statement.Fragment
  /** What changes with them when the row is `made`. */
  readonly concerned: Statement.Fragment
}

/**
 * What is special about a resource. Everything but `show` runs in the transaction of a change. A create is one statement, without
 * a transaction around it, when it locks nothing or only what `holding` describes, and the team is far from its limit. Then
 * `prepare` and `follow` must not use the database.
 */
export interface Special<Row extends StoredRow, R extends AnyResource> {
  /** Converts rows to records, in the same order. */
  readonly show: (
    rows: ReadonlyArray<Row>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  /** Completes stored fields, when a row may be older than some of them. */
  readonly fields?: (fields: FieldsOf<R>) => FieldsOf<R>
  /**
   * Locks what comes before its own row, in the order team, filters, destinations, sources, connections, transformations. The row
   * says which these are, so it is read first without a lock; when it has changed by the time that it is locked, everything
   * begins again.
   */
  readonly hold?: (team_id: string, before: Row | null, next: Values) => Effect.Effect<void, Failure>
  /**
   * The same as `hold` for a create, as part of its statement; null: the create needs more than that. When something is missing,
   * nothing is inserted, and the following transaction finds out what it is.
   */
  readonly holding?: (team_id: string, next: Values) => HeldRows | null
  /** Fails when another resource has a unique value of it, other than the name. */
  readonly claim?: (owner: Owner, before: Row | null, next: Values) => Effect.Effect<void, Failure>
  /** The final values to write; null: nothing has changed. Fails when something else prevents the change. */
  readonly prepare?: (owner: Owner, before: Row | null, next: Values) => Effect.Effect<Values | null, Failure>
  /** What written values change beside their own columns. */
  readonly written?: (row: Row, next: Values, at: Date) => Result.Result<Values, GatewayError>
  /** For a switch that changes more than its own column; null: it is already in that position. */
  readonly turn?: (row: Row, to: Switch, at: Date) => Result.Result<Values | null, GatewayError>
  /** The additional values of a delete. Fails when something prevents it. */
  readonly remove?: (row: Row, at: Date) => Effect.Effect<Values, Failure>
  /** A create writes more than its own row, so it is never one statement. */
  readonly createsMore?: true
  /**
   * Makes the changes that belong to the same commit, and returns whom all of it concerns. `by`: the user who asked for it, if
   * any.
   */
  readonly follow?: (before: Row | null, after: Row, at: Date, by: string | null) => Effect.Effect<Concerned, Failure>
  /** What a delete returns beside the id, read after the commit. */
  readonly deleted?: (row: Row) => Effect.Effect<Schema.JsonObject, SqlError.SqlError>
  /** Whom a change concerns that turns out to be made already. */
  readonly concerns?: (row: Row) => Effect.Effect<Concerned, Failure>
  /** Further conditions of a list. */
  readonly narrow?: (team_id: string, query: ResourceQuery) => ReadonlyArray<Statement.Fragment>
}

interface Committed<Row> {
  readonly row: Row
  readonly concerned: Concerned
  /** Whether it was just created: then all its counts are zero. */
  readonly isNew?: boolean
}

/** The store of a resource. */
export const makeStore = Effect.fnUntraced(function* <Row extends StoredRow, R extends AnyResource>(
  resource: R,
  special: Special<Row, R>
): Effect.fn.Return<Store<R>, never, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const limit = (yield* TeamLimits)[resource.plural]!
  const table = sql(resource.plural)
  const columns = Object.entries(resource.columns as { readonly [field: string]: string })
  const sealed = (field: string) => sealedColumn(secrets, resource.plural, field)

  const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

  const fieldsOf = Effect.fnUntraced(function* (row: Row): Effect.fn.Return<FieldsOf<R>> {
    const values = row as unknown as Values
    const fields: Record<string, unknown> = {}
    for (const [field, kind] of columns) {
      if (kind === "sealed") fields[field] = yield* sealed(field).show(row, values[field] as string | null)
      else fields[field] = kind === "since" ? values[`${field}_at`] !== null : values[field]
    }
    return special.fields?.(fields as FieldsOf<R>) ?? (fields as FieldsOf<R>)
  })

  const valuesOf = Effect.fnUntraced(function* (
    owner: Owner,
    fields: FieldsOf<R> | ChangeOf<R>,
    before: Row | null,
    at: Date
  ): Effect.fn.Return<Values> {
    const written = fields as unknown as Values
    const stored = before as unknown as Values | null
    const values: Record<string, unknown> = {}
    for (const [field, kind] of columns) {
      const value = written[field]
      if (kind === "json") values[field] = JSON.stringify(value)
      else if (kind === "since") values[`${field}_at`] = value === true ? (stored?.[`${field}_at`] ?? at) : null
      else if (kind === "plain") values[field] = value
      else if (value !== "unchanged") values[field] = yield* sealed(field).seal(owner, value as Schema.JsonObject)
    }
    return values
  })

  /** Includes the row's revision: two reads with the same revision have the same row. */
  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<Row & { readonly revision: string }>`
      select *, xmin::text as revision from ${table} where id = ${id} and team_id = ${team_id}
      ${sql.literal(locking === "lock" ? "for update" : "")}`
    return row ?? (yield* notFound(resource.name, id))
  })

  const present = <A extends Row>(row: A): Effect.Effect<A, GatewayError> =>
    row.deleted_at === null ? Effect.succeed(row) : Effect.fail(notFound(resource.name, row.id))

  const findByName = Effect.fnUntraced(function* (team_id: string, name: string, of: Values = {}) {
    const clauses = Object.entries({ team_id, name, ...of }).map(([column, value]) => sql`${sql(column)} = ${value}`)
    const [row] = yield* sql<{ id: string }>`select id from ${table} where ${sql.and(clauses)} and deleted_at is null`
    return row?.id ?? null
  })

  const claimName = Effect.fnUntraced(function* ({ id, team_id }: Owner, name: unknown) {
    const holder = yield* findByName(team_id, String(name))
    if (holder === null || holder === id) return
    const about = { id: holder, resource_type: resource.name }
    yield* fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", about)
  })

  const concerns = (row: Row) => special.concerns?.(row) ?? Effect.succeed(nobody)
  const claimed = (owner: Owner, before: Row | null, next: Values) =>
    special.claim?.(owner, before, next) ?? Effect.void
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
    held?: HeldRows,
    mayInsert = sql`true`
  ): Effect.fn.Return<Committed<Row> | null, Failure> {
    const { id, team_id } = owner
    const values = yield* prepared(owner, null, next)
    const stamps = { recent_commands: lately(command, []), created_at: at, updated_at: at }
    const written = Object.entries({ id, team_id, ...values, ...stamps })
    const made = sql`
      insert into ${table} (${sql.csv(written.map(([column]) => sql`${sql(column)}`))})
      select ${sql.csv(written.map(([, value]) => sql`${value}`))} where ${mayInsert} and ${held?.areThere ?? sql`true`}
      on conflict do nothing returning *`
    const [created] = yield* held === undefined
      ? sql<Row>`${made}`
      : sql<Row>`with ${held.rows}, made as (${made}), concerning as (${held.concerned}) select * from made`
    return created === undefined ? null : yield* followed(null, created, at, command)
  })

  const create = Effect.fnUntraced(function* (
    owner: Owner,
    fields: FieldsOf<R>,
    command: Command
  ): Effect.fn.Return<Committed<Row>, GatewayError> {
    const at = yield* now
    const { id, team_id } = owner
    const next = yield* valuesOf(owner, fields, null, at)
    const held = special.holding?.(team_id, next) ?? undefined
    const isAlone =
      isBeyondMargin(limit) && special.createsMore !== true && (special.hold === undefined || held !== undefined)
    const isFar = isFarFromLimit(sql, team_id, resource.plural, limit)
    const alone = isAlone ? yield* query(insert(owner, next, command, at, held, isFar)) : null
    if (alone !== null) return alone
    return yield* transaction(sql)(
      Effect.gen(function* () {
        if (special.hold !== undefined) yield* special.hold(team_id, null, next)
        yield* takePlace(sql, resource.plural, owner)
        const created = yield* insert(owner, next, command, at)
        if (created !== null) return created
        yield* claimName(owner, next["name"])
        yield* claimed(owner, null, next)
        const [stored] = yield* sql<Row>`select * from ${table} where id = ${id} and team_id = ${team_id}`
        if (stored === undefined) return yield* overtaken("what it clashed with has become free")
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
    yield* claimed(owner, row, next)
    const stamps = { recent_commands: lately(command, row.recent_commands), updated_at: at }
    const written = yield* prepared(owner, row, next)
    if (written === null) return { row, concerned: yield* concerns(row) }
    const values = { ...written, ...stamps }
    const assignments = Object.entries(values).map(([column, value]) => sql`${sql(column)} = ${value}`)
    const [after] = yield* sql<Row>`update ${table} set ${sql.csv(assignments)} where id = ${id} returning *`
    return yield* followed(row, after ?? row, at, command)
  })

  /** Commits, runs what has to follow, and only then reads the answer: no read happens while rows are locked. */
  const carryOut = Effect.fnUntraced(function* (change: Effect.Effect<Committed<Row>, GatewayError>, command: Command) {
    const committed = yield* change
    if (command.settle !== undefined) yield* command.settle(committed.concerned)
    return committed
  })
  const carryOutInOne = (change: Effect.Effect<Committed<Row>, Failure>, command: Command) =>
    carryOut(transaction(sql)(change), command)

  const record = (row: Row, counts = true): Effect.Effect<RecordOf<R>, SqlError.SqlError> =>
    Effect.map(special.show([row], { counts }), ([shown]) => shown as RecordOf<R>)
  const answer = ({ isNew = false, row }: Committed<Row>) => query(record(row, !isNew))

  return {
    get: (team_id, id) =>
      query(Effect.flatMap(Effect.flatMap(read(team_id, id, "look"), present), (row) => record(row))),
    findByName: (team_id, name, of) => query(findByName(team_id, name, of)),
    records: (rows, options) => special.show(rows as ReadonlyArray<Row>, options),
    list: (team_id, asked) =>
      listRows<Row>(sql, resource, team_id, asked, special.narrow?.(team_id, asked) ?? []).pipe(
        Effect.flatMap((found) =>
          Effect.map(special.show(found.rows, { counts: asked.counts, listed: true }), (models) =>
            resourcePage(asked, found, models)
          )
        ),
        query
      ),
    create: (team_id, id, fields, command = {}) =>
      Effect.flatMap(carryOut(create({ team_id, id }, fields, command), command), answer),
    update: (team_id, id, change, command = {}) => {
      const owner = { team_id, id }
      const decide = Effect.fnUntraced(function* (row: Row, at: Date) {
        const next = yield* valuesOf(owner, yield* Effect.fromResult(change(yield* fieldsOf(row))), row, at)
        return special.written === undefined ? next : yield* Effect.fromResult(special.written(row, next, at))
      })
      return Effect.flatMap(carryOutInOne(advance(owner, command, decide), command), answer)
    },
    turn: (team_id, id, to, command = {}) => {
      const { column, on } = switches[to as Switch]
      const decide = (row: Row, at: Date) => {
        if (special.turn !== undefined) return Effect.fromResult(special.turn(row, to as Switch, at))
        const isOn = (row as unknown as Values)[column] !== null
        return Effect.succeed(isOn === on ? null : { [column]: on ? at : null })
      }
      return Effect.flatMap(carryOutInOne(advance({ team_id, id }, command, decide), command), answer)
    },
    delete: (team_id, id, command = {}) => {
      const decide = Effect.fnUntraced(function* (row: Row, at: Date) {
        return { deleted_at: at, ...(special.remove === undefined ? {} : yield* special.remove(row, at)) }
      })
      return Effect.flatMap(carryOutInOne(advance({ team_id, id }, command, decide), command), ({ row }) =>
        special.deleted === undefined ? Effect.undefined : query(special.deleted(row))
      )
    }
  }
})
