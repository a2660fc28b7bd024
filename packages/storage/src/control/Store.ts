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

/** What the row of every resource has. */
export interface StoredRow extends Owner {
  readonly name: string
  /** The commands that wrote it lately, the latest first. */
  readonly recent_commands: ReadonlyArray<string>
  readonly deleted_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** Values by column. A fragment is an expression over the row. */
export interface Values {
  readonly [column: string]: unknown
}

/** Whom a committed change concerns beside the resource itself. */
export interface Concerned {
  /** Destinations that deliver by it. */
  readonly destinations: ReadonlyArray<string>
  /** Whose pending events have just become CANCELLED. */
  readonly cancelled: ReadonlyArray<PendingOf>
}

/** How records are shown. */
export interface Shown {
  /** With counts that take a read of their own. */
  readonly counts: boolean
  /** As a list shows them, where that is less. */
  readonly listed?: boolean
}

export const nobody: Concerned = { destinations: [], cancelled: [] }

/** How a change is asked for. */
export interface Command {
  /** Made once by whoever asks. A command that wrote the row lately changes nothing when it comes again: it is answered what is stored. */
  readonly id?: string | undefined
  /** The user who asks. */
  readonly by?: string | null | undefined
  /** What the commit owes to others. It is done before the answer is read, and so also when that cannot be. */
  readonly settle?: (concerned: Concerned) => Effect.Effect<void, GatewayError>
}

/** Commands that a row remembers. One comes again within seconds, when the connection that it went over breaks: so many others do not pass it. */
const maxRemembered = 16

const lately = ({ id }: Command, before: ReadonlyArray<string>): ReadonlyArray<string> =>
  id === undefined ? before : [id, ...before].slice(0, maxRemembered)

type Failure = GatewayError | SqlError.SqlError

/**
 * The rows of one resource, for one team at a time. Every change is one transaction; what it answers is read after the commit. A
 * switch that is in that position already writes nothing.
 */
export interface Store<R extends AnyResource> {
  readonly get: (team_id: string, id: string) => Effect.Effect<RecordOf<R>, GatewayError>
  /** The id of the resource of that name (and of these values), or null. */
  readonly findByName: (team_id: string, name: string, of?: Values) => Effect.Effect<string | null, GatewayError>
  /** Rows as records, in the same order. */
  readonly records: (
    rows: ReadonlyArray<StoredRow>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  readonly list: (team_id: string, query: ResourceQuery) => Effect.Effect<ResourcePage<RecordOf<R>>, GatewayError>
  /** Repeating a create with the same id changes nothing and answers what is stored. */
  readonly create: (
    team_id: string,
    id: string,
    fields: FieldsOf<R>,
    command?: Command
  ) => Effect.Effect<RecordOf<R>, GatewayError>
  /** `change` is given what is stored, and may be called more than once. */
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
  /** What there is to tell beside its id, if anything. */
  readonly delete: (
    team_id: string,
    id: string,
    command?: Command
  ) => Effect.Effect<Schema.JsonObject | undefined, GatewayError>
}

/** What a create depends on, as parts of the statement that inserts it. */
export interface HeldRows {
  /** What it holds. */
  readonly rows: Statement.Fragment
  /** Whether that is all there. */
  readonly areThere: Statement.Fragment
  /** What becomes of that when the row is `made`. */
  readonly concerned: Statement.Fragment
}

/**
 * What is special about the rows of a resource. All but `show` runs in the transaction of a change. A create that holds nothing, or is
 * `holding` it, and of which a team is far from its limit, is one statement, and that is its transaction: what prepares and follows it asks the
 * database nothing.
 */
export interface Special<Row extends StoredRow, R extends AnyResource> {
  /** Rows as records, in the same order. */
  readonly show: (
    rows: ReadonlyArray<Row>,
    options: Shown
  ) => Effect.Effect<ReadonlyArray<RecordOf<R>>, SqlError.SqlError>
  /** Stored fields, where a row may be older than a part of them. */
  readonly fields?: (fields: FieldsOf<R>) => FieldsOf<R>
  /**
   * Locks what comes before its own row: locks are taken in the order team, filters, destinations, sources, connections, transformations. What
   * these are is known only from the row, so that is looked at first, and everything begins anew if it has changed by the time
   * that it is locked itself.
   */
  readonly hold?: (team_id: string, before: Row | null, next: Values) => Effect.Effect<void, Failure>
  /**
   * What `hold` does for a create, in one statement with it; null: the create takes more than that. When not all is there, nothing is inserted, and
   * the transaction that follows finds out what is missing.
   */
  readonly holding?: (team_id: string, next: Values) => HeldRows | null
  /** Fails when something of it that is unique, beyond its name, is another's. */
  readonly claim?: (owner: Owner, before: Row | null, next: Values) => Effect.Effect<void, Failure>
  /** What is written in the end; null: nothing has changed. Fails when something else is in the way. */
  readonly prepare?: (owner: Owner, before: Row | null, next: Values) => Effect.Effect<Values | null, Failure>
  /** What written values come to, where that is more than themselves. */
  readonly written?: (row: Row, next: Values, at: Date) => Result.Result<Values, GatewayError>
  /** Where a switch is more than its own column; null: it is in that position already. */
  readonly turn?: (row: Row, to: Switch, at: Date) => Result.Result<Values | null, GatewayError>
  /** What else a delete writes. Fails when something is in the way. */
  readonly remove?: (row: Row, at: Date) => Effect.Effect<Values, Failure>
  /** A create writes more than its own row, and so is never one statement. */
  readonly createsMore?: true
  /** What has to change with it, in the same commit; and whom it all concerns. `by`: the user who asked for it, if one did. */
  readonly follow?: (before: Row | null, after: Row, at: Date, by: string | null) => Effect.Effect<Concerned, Failure>
  /** What its delete answers beside its id, read after the commit. */
  readonly deleted?: (row: Row) => Effect.Effect<Schema.JsonObject, SqlError.SqlError>
  /** Whom a change concerns that turns out to have been made already. */
  readonly concerns?: (row: Row) => Effect.Effect<Concerned, Failure>
  /** What a list is narrowed to, beyond what every list is. */
  readonly narrow?: (team_id: string, query: ResourceQuery) => ReadonlyArray<Statement.Fragment>
}

interface Committed<Row> {
  readonly row: Row
  readonly concerned: Concerned
  /** Whether it has been made just now: nothing has been counted of it. */
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

  /** With the row's revision: two reads that show the same one show the same row. */
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

  /** Null: it clashes with what is stored, or what it depends on is not all there. */
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

  /** Takes a row to what `decide` makes of it: null is no change. */
  const advance = Effect.fnUntraced(function* (
    owner: Owner,
    command: Command,
    decide: (row: Row, at: Date) => Effect.Effect<Values | null, Failure>
  ): Effect.fn.Return<Committed<Row>, Failure> {
    const { id, team_id } = owner
    const row = yield* read(team_id, id, special.hold === undefined ? "lock" : "look")
    // Also when it is gone: a delete that comes again has been carried out.
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

  /** Commits, does what that owes to others, and only then reads what is answered: nobody waits for a read with rows locked. */
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
