import { Clock, Context, Effect, Layer, Result } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { Connection } from "@tidegate/model/Connection"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { Rule } from "@tidegate/model/Rule"
import * as State from "./ConnectionState.ts"
import type { ConnectionFields, ConnectionState, Transition } from "./ConnectionState.ts"
import { type DestinationRow, Destinations } from "./Destinations.ts"
import { Secrets } from "./Secrets.ts"
import { type SourceRow, Sources } from "./Sources.ts"
import { overtaken, query, transaction } from "./Transaction.ts"
import { holdTransformations, upsertTransformation } from "./TransformationLinks.ts"

/** A row of `connections`. */
export interface ConnectionRow extends ConnectionState {
  readonly id: string
  readonly team_id: string
  readonly created_at: Date
  readonly updated_at: Date
}

/** What a committed change of a connection concerns beside itself. */
export interface ConnectionChanged {
  readonly connection: Connection
  /** The destination it delivers to, and the one it delivered to before. */
  readonly destinations: ReadonlyArray<string>
  /** Whether its pending events have just become CANCELLED. */
  readonly cancelled: boolean
}

const exists = (id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", { id, resource_type: "connection" })

/**
 * The rows of `connections`, for one team at a time. Every change is one transaction and raises the version of its
 * source (of both, when it moves), so that no door goes on routing by what was. Rows are locked in the order
 * destinations, sources, connections, transformations. A command that changes nothing writes nothing.
 */
export class Connections extends Context.Service<
  Connections,
  {
    readonly get: (team_id: string, id: string) => Effect.Effect<Connection, GatewayError>
    /** The id of the connection of that source and name, or null. */
    readonly findByName: (
      team_id: string,
      source_id: string,
      name: string
    ) => Effect.Effect<string | null, GatewayError>
    /** Rows as records, in the same order. Takes part in its caller's transaction. */
    readonly records: (
      rows: ReadonlyArray<ConnectionRow>
    ) => Effect.Effect<ReadonlyArray<Connection>, SqlError.SqlError>
    /** Repeating a create with the same id changes nothing and answers what is stored. */
    readonly create: (
      team_id: string,
      id: string,
      fields: ConnectionFields
    ) => Effect.Effect<ConnectionChanged, GatewayError>
    /** `change` is given what is stored, and may be called more than once. */
    readonly update: (
      team_id: string,
      id: string,
      change: (stored: ConnectionFields) => Result.Result<ConnectionFields, GatewayError>
    ) => Effect.Effect<ConnectionChanged, GatewayError>
    readonly disable: (team_id: string, id: string) => Effect.Effect<ConnectionChanged, GatewayError>
    readonly enable: (team_id: string, id: string) => Effect.Effect<ConnectionChanged, GatewayError>
    readonly pause: (team_id: string, id: string) => Effect.Effect<ConnectionChanged, GatewayError>
    readonly unpause: (team_id: string, id: string) => Effect.Effect<ConnectionChanged, GatewayError>
    readonly delete: (team_id: string, id: string) => Effect.Effect<Omit<ConnectionChanged, "connection">, GatewayError>
  }
>()("@tidegate/storage/Connections") {
  static readonly layer: Layer.Layer<Connections, never, SqlClient.SqlClient | Secrets | Sources | Destinations> =
    Layer.effect(
      Connections,
      Effect.suspend(() => make)
    )
}

interface Changed {
  readonly row: ConnectionRow
  readonly destinations: ReadonlyArray<string>
  readonly cancelled: boolean
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const sources = yield* Sources
  const destinations = yield* Destinations

  const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

  const records = Effect.fnUntraced(function* (rows: ReadonlyArray<ConnectionRow>) {
    if (rows.length === 0) return []
    const sourceRows = yield* sql<SourceRow>`
      select * from sources where id = any(${[...new Set(rows.map((row) => row.source_id))]})`
    const destinationRows = yield* sql<DestinationRow>`
      select * from destinations where id = any(${[...new Set(rows.map((row) => row.destination_id))]})`
    const sourceOf = new Map((yield* sources.records(sourceRows)).map((source) => [source.id, source]))
    const destinationOf = new Map(
      (yield* destinations.records(destinationRows, { counts: true })).map((destination) => [
        destination.id,
        destination
      ])
    )
    return rows.map((row): Connection => ({
      id: row.id,
      team_id: row.team_id,
      name: row.name,
      description: row.description,
      source_id: row.source_id,
      destination_id: row.destination_id,
      // Foreign keys: both rows are there, deleted or not.
      source: sourceOf.get(row.source_id)!,
      destination: destinationOf.get(row.destination_id)!,
      rules: row.rules,
      disabled_at: row.disabled_at?.toISOString() ?? null,
      paused_at: row.paused_at?.toISOString() ?? null,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString()
    }))
  })

  const record = (row: ConnectionRow) => Effect.map(records([row]), ([connection]) => connection as Connection)

  /** With the row's revision: two reads that show the same one show the same row. */
  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<ConnectionRow & { revision: string }>`
      select *, xmin::text as revision from connections
      where id = ${id} and team_id = ${team_id} and deleted_at is null
      ${locking === "lock" ? sql.literal("for update") : sql.literal("")}`
    return row ?? (yield* notFound("connection", id))
  })

  const nameHolder = Effect.fnUntraced(function* (team_id: string, name: string) {
    const [row] = yield* sql<{ id: string }>`
      select id from connections where team_id = ${team_id} and name = ${name} and deleted_at is null`
    return row?.id ?? null
  })

  /** Keeps the destination from being deleted until the transaction ends. */
  const holdDestination = Effect.fnUntraced(function* (team_id: string, id: string) {
    const [row] = yield* sql`
      select 1 from destinations where id = ${id} and team_id = ${team_id} and deleted_at is null for share`
    if (row === undefined) yield* notFound("destination", id)
  })

  /** Makes doors route again what they routed by these sources, and keeps others from changing them. */
  const raiseVersions = Effect.fnUntraced(function* (team_id: string, ids: ReadonlyArray<string>) {
    const raised = yield* sql<{ id: string }>`
      with concerned as materialized (
        select id from sources where id = any(${ids}) and team_id = ${team_id} and deleted_at is null
        order by id for update
      )
      update sources set version = version + 1 from concerned where sources.id = concerned.id returning sources.id`
    const missing = ids.find((id) => !raised.some((row) => row.id === id))
    if (missing !== undefined) yield* notFound("source", missing)
  })

  /** The rules with their transformations linked: those written inside a rule are stored, all are kept from being deleted. */
  const linkTransformations = Effect.fnUntraced(function* (team_id: string, rules: ConnectionFields["rules"]) {
    const linked: Array<Rule> = []
    for (const rule of rules) {
      if (rule.type !== "transform" || !("transformation" in rule)) {
        linked.push(rule)
        continue
      }
      const { code, env, name } = rule.transformation
      const transformation_id = yield* upsertTransformation(sql, secrets, team_id, { name, code, env })
      linked.push({ type: "transform", transformation_id })
    }
    const ids = linked.flatMap((rule) => ("transformation_id" in rule ? [rule.transformation_id] : []))
    yield* holdTransformations(sql, team_id, ids)
    return linked
  })

  const create = Effect.fnUntraced(function* (
    team_id: string,
    id: string,
    fields: ConnectionFields
  ): Effect.fn.Return<Changed, GatewayError | SqlError.SqlError> {
    if (fields.disabled_at !== null && fields.paused_at !== null) {
      return yield* fail("CONNECTION_DISABLED", "a disabled connection cannot be paused")
    }
    yield* holdDestination(team_id, fields.destination_id)
    yield* raiseVersions(team_id, [fields.source_id])
    const rules = yield* linkTransformations(team_id, fields.rules)
    const at = yield* now
    const [created] = yield* sql<ConnectionRow>`
      insert into connections (id, team_id, name, description, source_id, destination_id, rules, disabled_at, paused_at,
        created_at, updated_at)
      values (${id}, ${team_id}, ${fields.name}, ${fields.description}, ${fields.source_id}, ${fields.destination_id},
        ${JSON.stringify(rules)}, ${fields.disabled_at}, ${fields.paused_at}, ${at}, ${at})
      on conflict do nothing returning *`
    const concerned = { destinations: [fields.destination_id], cancelled: false }
    if (created !== undefined) return { row: created, ...concerned }
    const holder = yield* nameHolder(team_id, fields.name)
    if (holder !== null && holder !== id) return yield* exists(holder)
    const [stored] = yield* sql`select 1 from connections where id = ${id}`
    if (stored === undefined) return yield* overtaken("the name has become free")
    return { row: yield* read(team_id, id, "look"), ...concerned }
  })

  /**
   * Takes a connection to its next state. What has to be locked before its row is known only from the row: so it is
   * looked at first, and the transaction is taken again if it has changed by the time that it is locked.
   */
  const advance = Effect.fnUntraced(function* (
    team_id: string,
    id: string,
    transition: Transition
  ): Effect.fn.Return<Changed, GatewayError | SqlError.SqlError> {
    const { revision, ...row } = yield* read(team_id, id, "look")
    const at = yield* now
    const next = yield* Effect.fromResult(transition(row, at))
    if (next === row) return { row, destinations: [row.destination_id], cancelled: false }

    if (next.destination_id !== row.destination_id) yield* holdDestination(team_id, next.destination_id)
    yield* raiseVersions(team_id, [...new Set([row.source_id, next.source_id])])
    const locked = yield* read(team_id, id, "lock")
    if (locked.revision !== revision) return yield* overtaken("the connection has changed")

    const holder = next.name === row.name ? null : yield* nameHolder(team_id, next.name)
    if (holder !== null) return yield* exists(holder)
    const rules = next.rules === row.rules ? row.rules : yield* linkTransformations(team_id, next.rules)
    const [written] = yield* sql<ConnectionRow>`
      update connections set name = ${next.name}, description = ${next.description}, source_id = ${next.source_id},
        destination_id = ${next.destination_id}, rules = ${JSON.stringify(rules)},
        disabled_at = ${next.disabled_at}, disabled_by = ${next.disabled_by}, paused_at = ${next.paused_at},
        resumed_at = ${next.resumed_at}, cancel_before = ${next.cancel_before}, deleted_at = ${next.deleted_at},
        updated_at = ${at}
      where id = ${id} returning *`
    return {
      row: written ?? next,
      destinations: [...new Set([row.destination_id, next.destination_id])],
      cancelled: next.cancel_before !== row.cancel_before
    }
  })

  const changed = ({ row, ...concerned }: Changed) =>
    Effect.map(record(row), (connection): ConnectionChanged => ({ connection, ...concerned }))

  const command = (transition: Transition) => (team_id: string, id: string) =>
    transaction(sql)(Effect.flatMap(advance(team_id, id, transition), changed))

  return Connections.of({
    get: (team_id, id) => query(Effect.flatMap(read(team_id, id, "look"), record)),
    findByName: (team_id, source_id, name) =>
      query(
        Effect.map(
          sql<{ id: string }>`
            select id from connections
            where team_id = ${team_id} and source_id = ${source_id} and name = ${name} and deleted_at is null`,
          ([row]) => row?.id ?? null
        )
      ),
    records,
    create: (team_id, id, fields) => transaction(sql)(Effect.flatMap(create(team_id, id, fields), changed)),
    update: (team_id, id, change) =>
      command((state, at) => Result.flatMap(change(state), (fields) => State.write(fields)(state, at)))(team_id, id),
    disable: command(State.disable),
    enable: command(State.enable),
    pause: command(State.pause),
    unpause: command(State.unpause),
    delete: (team_id, id) =>
      transaction(sql)(
        Effect.map(advance(team_id, id, State.remove), ({ cancelled, destinations }) => ({ cancelled, destinations }))
      )
  })
})
