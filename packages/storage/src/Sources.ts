import { Clock, Context, Effect, Layer, type Result, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { fail, type GatewayError, notFound } from "@tidegate/model/GatewayError"
import { Ingress, sourceUrl } from "@tidegate/model/Ingress"
import type { Source } from "@tidegate/model/Source"
import { openAuth, sealAuth, showAuth } from "./AuthColumn.ts"
import { Secrets } from "./Secrets.ts"
import { overtaken, query, transaction } from "./Transaction.ts"

/** `config` as stored: all of the record's but `auth`, which has a column of its own. */
export type SourceConfig = Omit<Source["config"], "auth">

type Later = "chat_defer_ephemeral"

type StoredConfig = Omit<SourceConfig, Later> & Partial<Pick<SourceConfig, Later>>

const configOf = ({ config }: SourceRow): SourceConfig => ({
  ...config,
  chat_defer_ephemeral: config.chat_defer_ephemeral ?? false
})

/** A row of `sources`. */
export interface SourceRow {
  readonly id: string
  readonly team_id: string
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly slug: string | null
  /** Of an older version, it lacks the members that came later: `configOf` reads it. */
  readonly config: StoredConfig
  /** Encrypted. */
  readonly auth: string | null
  readonly disabled_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** What a caller can write of a source, checked and complete; secrets in the clear. */
export interface SourceFields {
  readonly name: string
  readonly description: string | null
  readonly type: string
  readonly disabled: boolean
  /** Names it in its URL, beside its id; null: the id alone. */
  readonly slug: string | null
  readonly config: SourceConfig
  readonly auth: Schema.JsonObject
}

/** `auth` is "unchanged" when the caller did not write it: then what is stored stays, even if it cannot be read. */
export interface SourceChange extends Omit<SourceFields, "auth"> {
  readonly auth: Schema.JsonObject | "unchanged"
}

/** What a committed change of a source concerns beside itself. */
export interface SourceChanged {
  readonly source: Source
  /** Destinations that its connections deliver to. */
  readonly destinations: ReadonlyArray<string>
  /** Connections whose pending events have just become CANCELLED. */
  readonly cancelled: ReadonlyArray<string>
}

const exists = (id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "Resource already exists", { id, resource_type: "source" })

/** Says which source has the URL to its own team only. */
const urlTaken = (holder: SlugHolder, team_id: string): GatewayError =>
  fail("RESOURCE_ALREADY_EXISTS", "another source has this url", {
    ...(holder.team_id === team_id ? { id: holder.id } : {}),
    resource_type: "source",
    fields: [{ path: "url", message: "is another source's already" }]
  })

interface SlugHolder {
  readonly id: string
  readonly team_id: string
}

/**
 * The rows of `sources`, for one team at a time. Every change is one transaction and raises the row's version, so that
 * no door goes on routing by what was. Rows are locked in the order destinations, sources, connections.
 */
export class Sources extends Context.Service<
  Sources,
  {
    readonly get: (team_id: string, id: string) => Effect.Effect<Source, GatewayError>
    /** The id of the source of that name, or null. */
    readonly findByName: (team_id: string, name: string) => Effect.Effect<string | null, GatewayError>
    /** Rows as records, in the same order. */
    readonly records: (rows: ReadonlyArray<SourceRow>) => Effect.Effect<ReadonlyArray<Source>>
    /** Repeating a create with the same id changes nothing and answers what is stored. */
    readonly create: (team_id: string, id: string, fields: SourceFields) => Effect.Effect<Source, GatewayError>
    /** `change` is given what is stored, and may be called more than once. */
    readonly update: (
      team_id: string,
      id: string,
      change: (stored: SourceFields) => Result.Result<SourceChange, GatewayError>
    ) => Effect.Effect<SourceChanged, GatewayError>
    /** Switches its enabled connections off with it, and on again exactly those. Idempotent. */
    readonly setDisabled: (team_id: string, id: string, disabled: boolean) => Effect.Effect<SourceChanged, GatewayError>
    /** Deletes its connections with it; their requests and events stay. */
    readonly delete: (team_id: string, id: string) => Effect.Effect<Omit<SourceChanged, "source">, GatewayError>
  }
>()("@tidegate/storage/Sources") {
  static readonly layer: Layer.Layer<Sources, never, SqlClient.SqlClient | Secrets | Ingress> = Layer.effect(
    Sources,
    Effect.suspend(() => make)
  )
}

const table = "sources"

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const ingress = yield* Ingress

  const now = Effect.map(Clock.currentTimeMillis, (ms) => new Date(ms))

  const record = Effect.fnUntraced(function* (row: SourceRow): Effect.fn.Return<Source> {
    return {
      id: row.id,
      team_id: row.team_id,
      name: row.name,
      description: row.description,
      type: row.type,
      input_type: "webhook",
      status: row.disabled_at === null ? "enabled" : "disabled",
      url: sourceUrl(ingress, row.slug ?? row.id),
      config: { ...configOf(row), auth: yield* showAuth(secrets, table, row) },
      disabled_at: row.disabled_at?.toISOString() ?? null,
      created_at: row.created_at.toISOString(),
      updated_at: row.updated_at.toISOString()
    }
  })

  const read = Effect.fnUntraced(function* (team_id: string, id: string, locking: "lock" | "look") {
    const [row] = yield* sql<SourceRow>`
      select * from sources where id = ${id} and team_id = ${team_id} and deleted_at is null
      ${locking === "lock" ? sql.literal("for update") : sql.literal("")}`
    return row ?? (yield* notFound("source", id))
  })

  const findByName = Effect.fnUntraced(function* (team_id: string, name: string) {
    const [row] = yield* sql<{ id: string }>`
      select id from sources where team_id = ${team_id} and name = ${name} and deleted_at is null`
    return row?.id ?? null
  })

  /** Fails when the slug is another source's, of whatever team. */
  const claimSlug = Effect.fnUntraced(function* (team_id: string, id: string, slug: string | null) {
    if (slug === null) return
    const [holder] = yield* sql<SlugHolder>`
      select id, team_id from sources where slug = ${slug} and deleted_at is null`
    if (holder !== undefined && holder.id !== id) yield* urlTaken(holder, team_id)
  })

  const destinationsOf = Effect.fnUntraced(function* (id: string) {
    const rows = yield* sql<{ destination_id: string }>`
      select distinct destination_id from connections where source_id = ${id} and deleted_at is null`
    return rows.map((row) => row.destination_id)
  })

  const create = Effect.fnUntraced(function* (team_id: string, id: string, fields: SourceFields) {
    const at = yield* now
    const auth = yield* sealAuth(secrets, table, { team_id, id }, fields.auth)
    const [created] = yield* sql<SourceRow>`
      insert into sources (id, team_id, name, description, type, slug, config, auth, disabled_at, created_at, updated_at)
      values (${id}, ${team_id}, ${fields.name}, ${fields.description}, ${fields.type}, ${fields.slug},
        ${JSON.stringify(fields.config)}, ${auth}, ${fields.disabled ? at : null}, ${at}, ${at})
      on conflict do nothing returning *`
    if (created !== undefined) return created
    const holder = yield* findByName(team_id, fields.name)
    if (holder !== null && holder !== id) return yield* exists(holder)
    yield* claimSlug(team_id, id, fields.slug)
    const [stored] = yield* sql`select 1 from sources where id = ${id}`
    return stored === undefined
      ? yield* overtaken("the name or the URL has become free")
      : yield* read(team_id, id, "look")
  })

  /** Switches the connections of a source off or on with it; answers those whose pending events that cancels. */
  const followDisabled = Effect.fnUntraced(function* (id: string, disabled: boolean, at: Date) {
    const rows = disabled
      ? yield* sql<{ id: string }>`
          update connections
          set disabled_at = ${at}, disabled_by = 'source', paused_at = null, cancel_before = ${at}, updated_at = ${at}
          where source_id = ${id} and deleted_at is null and disabled_at is null returning id`
      : yield* sql<{ id: string }>`
          update connections
          set disabled_at = null, disabled_by = null, cancel_before = ${at}, updated_at = ${at}
          where source_id = ${id} and deleted_at is null and disabled_by = 'source' returning id`
    return rows.map((row) => row.id)
  })

  const write = Effect.fnUntraced(function* (row: SourceRow, change: SourceChange) {
    const at = yield* now
    const { auth, config, description, disabled, name, slug, type } = change
    const holder = name === row.name ? null : yield* findByName(row.team_id, name)
    if (holder !== null) return yield* exists(holder)
    if (slug !== row.slug) yield* claimSlug(row.team_id, row.id, slug)
    const sealed = auth === "unchanged" ? row.auth : yield* sealAuth(secrets, table, row, auth)
    const [written] = yield* sql<SourceRow>`
      update sources set name = ${name}, description = ${description}, type = ${type}, slug = ${slug},
        config = ${JSON.stringify(config)}, auth = ${sealed}, disabled_at = ${disabled ? (row.disabled_at ?? at) : null}, version = version + 1,
        updated_at = ${at}
      where id = ${row.id} returning *`
    const flipped = disabled !== (row.disabled_at !== null)
    return {
      row: written ?? row,
      cancelled: flipped ? yield* followDisabled(row.id, disabled, at) : [],
      destinations: yield* destinationsOf(row.id)
    }
  })

  const changed = ({
    row,
    ...concerned
  }: {
    readonly row: SourceRow
    readonly cancelled: ReadonlyArray<string>
    readonly destinations: ReadonlyArray<string>
  }): Effect.Effect<SourceChanged> => Effect.map(record(row), (source) => ({ source, ...concerned }))

  return Sources.of({
    get: (team_id, id) => Effect.flatMap(query(read(team_id, id, "look")), record),
    findByName: (team_id, name) => query(findByName(team_id, name)),
    records: (rows) => Effect.forEach(rows, record),

    create: (team_id, id, fields) => Effect.flatMap(transaction(sql)(create(team_id, id, fields)), record),

    update: (team_id, id, change) =>
      Effect.gen(function* () {
        const row = yield* read(team_id, id, "lock")
        const { description, name, slug, type } = row
        const auth = yield* openAuth(secrets, table, row)
        const disabled = row.disabled_at !== null
        const stored = { name, description, type, slug, config: configOf(row), auth, disabled }
        return yield* write(row, yield* Effect.fromResult(change(stored)))
      }).pipe(transaction(sql), Effect.flatMap(changed)),

    setDisabled: (team_id, id, disabled) =>
      Effect.gen(function* () {
        const row = yield* read(team_id, id, "lock")
        return disabled === (row.disabled_at !== null)
          ? { row, cancelled: [], destinations: yield* destinationsOf(id) }
          : yield* write(row, { ...row, config: configOf(row), auth: "unchanged", disabled })
      }).pipe(transaction(sql), Effect.flatMap(changed)),

    delete: (team_id, id) =>
      Effect.gen(function* () {
        const row = yield* read(team_id, id, "lock")
        const at = yield* now
        yield* sql`
          update sources set deleted_at = ${at}, version = version + 1, updated_at = ${at} where id = ${row.id}`
        const rows = yield* sql<{ id: string; destination_id: string }>`
          update connections set deleted_at = ${at}, cancel_before = ${at}, updated_at = ${at}
          where source_id = ${row.id} and deleted_at is null returning id, destination_id`
        return { cancelled: rows.map((row) => row.id), destinations: rows.map((row) => row.destination_id) }
      }).pipe(transaction(sql))
  })
})
