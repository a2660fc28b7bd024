import { Clock, Context, Effect, Layer, type Result, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { shownSettings } from "@tidegate/connectors/Connectors"
import type { Config } from "@tidegate/connectors/Settings"
import type { Destination } from "@tidegate/model/Destination"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { openAuth, sealAuth, showAuth } from "./AuthColumn.ts"
import { rollupBins, total } from "./RollupBins.ts"
import { Secrets } from "./Secrets.ts"
import { overtaken, query, transaction } from "./Transaction.ts"

/** `config` as stored: the settings of its type, and how it authenticates; `auth` has a column of its own. */
export type DestinationConfig = Config & { readonly auth_type: string | null }

/** A row of `destinations`. */
export interface DestinationRow {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly config: DestinationConfig
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** What a caller can write of a destination, checked and complete; secrets in the clear. */
export interface DestinationFields {
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly config: DestinationConfig
  readonly auth: Schema.JsonObject
}

/** `auth` is "unchanged" when the caller did not write it: then what is stored stays, even if it cannot be read. */
export interface DestinationChange extends Omit<DestinationFields, "auth"> {
  readonly auth: Schema.JsonObject | "unchanged"
}

const exists = (id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", { id, resource_type: "destination" })

/**
 * The rows of `destinations`, for one team at a time. Every change is one transaction. One that decides whether events
 * may go there raises the version of every source with a connection to it, so that no door goes on routing by what was.
 * Rows are locked in the order destinations, sources, connections.
 */
export class Destinations extends Context.Service<
  Destinations,
  {
    readonly get: (team_id: string, id: string) => Effect.Effect<Destination, GatewayError>
    /** The id of the destination of that name, or null. */
    readonly findByName: (team_id: string, name: string) => Effect.Effect<string | null, GatewayError>
    /** Rows as records, in the same order, with their attempts of the last 24 hours. Takes part in its caller's transaction. */
    readonly records: (
      rows: ReadonlyArray<DestinationRow>
    ) => Effect.Effect<ReadonlyArray<Destination>, SqlError.SqlError>
    /** Repeating a create with the same id changes nothing and answers what is stored. */
    readonly create: (
      team_id: string,
      id: string,
      fields: DestinationFields
    ) => Effect.Effect<Destination, GatewayError>
    /** `change` is given what is stored, and may be called more than once. */
    readonly update: (
      team_id: string,
      id: string,
      change: (stored: DestinationFields) => Result.Result<DestinationChange, GatewayError>
    ) => Effect.Effect<Destination, GatewayError>
    /** Idempotent: nothing happens to one that is in that state already. */
    readonly setDisabled: (team_id: string, id: string, disabled: boolean) => Effect.Effect<Destination, GatewayError>
    /** Deletes its connections with it; their events stay. */
    readonly delete: (team_id: string, id: string) => Effect.Effect<void, GatewayError>
  }
>()("@tidegate/storage/Destinations") {
  static readonly layer: Layer.Layer<Destinations, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    Destinations,
    Effect.suspend(() => make)
  )
}

const table = "destinations"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets

  const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

  const records = Effect.fnUntraced(function* (rows: ReadonlyArray<DestinationRow>) {
    const counts = yield* rollupBins(
      sql,
      rows.map((row) => row.id),
      ["attempt_successful", "attempt_failed"],
      yield* Clock.currentTimeMillis
    )
    return yield* Effect.forEach(rows, (row) =>
      Effect.map(showAuth(secrets, table, row), (auth): Destination => {
        const attempts = counts.get(row.id) ?? []
        return {
          id: row.id,
          team_id: row.team_id,
          name: row.name,
          description: row.description,
          type: row.type,
          config: { ...shownSettings(row.type, row.config), auth_type: row.config.auth_type, auth },
          disabled_at: row.disabled_at?.toISOString() ?? null,
          attempts_24h_count: total(attempts),
          attempts_24h_bins: attempts,
          created_at: row.created_at.toISOString(),
          updated_at: row.updated_at.toISOString()
        }
      })
    )
  })

  const record = (row: DestinationRow) => Effect.map(records([row]), ([destination]) => destination as Destination)

  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<DestinationRow>`
      select * from destinations where id = ${id} and team_id = ${team_id} and deleted_at is null
      ${locking === "lock" ? sql.literal("for update") : sql.literal("")}`
    return row ?? (yield* notFound("destination", id))
  })

  const findByName = Effect.fnUntraced(function* (team_id: string, name: string) {
    const [row] = yield* sql<{ id: string }>`
      select id from destinations where team_id = ${team_id} and name = ${name} and deleted_at is null`
    return row?.id ?? null
  })

  /** Makes doors route again what they routed by this destination. Sources are locked in id order. */
  const raiseVersions = (id: string) => sql`
    with concerned as materialized (
      select id from sources
      where id in (select source_id from connections where destination_id = ${id} and deleted_at is null)
      order by id for update
    )
    update sources set version = version + 1 from concerned where sources.id = concerned.id`

  const create = Effect.fnUntraced(function* (team_id: string, id: string, fields: DestinationFields) {
    const at = yield* now
    const auth = yield* sealAuth(secrets, table, { team_id, id }, fields.auth)
    const [created] = yield* sql<DestinationRow>`
      insert into destinations (id, team_id, name, description, type, config, auth, created_at, updated_at)
      values (${id}, ${team_id}, ${fields.name}, ${fields.description}, ${fields.type},
        ${JSON.stringify(fields.config)}, ${auth}, ${at}, ${at})
      on conflict do nothing returning *`
    if (created !== undefined) return created
    const holder = yield* findByName(team_id, fields.name)
    if (holder !== null && holder !== id) return yield* exists(holder)
    const [stored] = yield* sql`select 1 from destinations where id = ${id}`
    return stored === undefined ? yield* overtaken("the name has become free") : yield* read(team_id, id, "look")
  })

  const update = Effect.fnUntraced(function* (
    team_id: string,
    id: string,
    change: (stored: DestinationFields) => Result.Result<DestinationChange, GatewayError>
  ) {
    const row = yield* read(team_id, id, "lock")
    const at = yield* now
    const stored = { ...row, auth: yield* openAuth(secrets, table, row) }
    const { auth, config, description, name, type } = yield* Effect.fromResult(change(stored))
    const holder = name === row.name ? null : yield* findByName(team_id, name)
    if (holder !== null) return yield* exists(holder)
    const sealed = auth === "unchanged" ? row.auth : yield* sealAuth(secrets, table, row, auth)
    const [written] = yield* sql<DestinationRow>`
      update destinations set name = ${name}, description = ${description}, type = ${type},
        config = ${JSON.stringify(config)}, auth = ${sealed}, updated_at = ${at}
      where id = ${id} returning *`
    if (type !== row.type) yield* raiseVersions(id)
    return written ?? row
  })

  const setDisabled = Effect.fnUntraced(function* (team_id: string, id: string, disabled: boolean) {
    const row = yield* read(team_id, id, "lock")
    if (disabled === (row.disabled_at !== null)) return row
    const at = yield* now
    const [written] = yield* sql<DestinationRow>`
      update destinations set disabled_at = ${disabled ? at : null}, cancel_before = ${at}, updated_at = ${at}
      where id = ${id} returning *`
    yield* raiseVersions(id)
    return written ?? row
  })

  const remove = Effect.fnUntraced(function* (team_id: string, id: string) {
    yield* read(team_id, id, "lock")
    const at = yield* now
    yield* sql`
      update destinations set deleted_at = ${at}, cancel_before = ${at}, updated_at = ${at} where id = ${id}`
    yield* raiseVersions(id)
    yield* sql`
      update connections set deleted_at = ${at}, cancel_before = ${at}, updated_at = ${at}
      where destination_id = ${id} and deleted_at is null`
  })

  return Destinations.of({
    get: (team_id, id) => query(Effect.flatMap(read(team_id, id, "look"), record)),
    findByName: (team_id, name) => query(findByName(team_id, name)),
    records,
    create: (team_id, id, fields) => transaction(sql)(Effect.flatMap(create(team_id, id, fields), record)),
    update: (team_id, id, change) => transaction(sql)(Effect.flatMap(update(team_id, id, change), record)),
    setDisabled: (team_id, id, disabled) =>
      transaction(sql)(Effect.flatMap(setDisabled(team_id, id, disabled), record)),
    delete: (team_id, id) => transaction(sql)(remove(team_id, id))
  })
})
