import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import type { Isolation } from "@tidegate/model/Transformation"
import type { Rule } from "@tidegate/model/Rule"
import { HotSql } from "../Database.ts"
import { Rows } from "../journal/Rows.ts"
import { GroupCommit } from "../journal/GroupCommit.ts"

/** A routing job: a request that waits for the slow rules of its connection. */
export interface RoutingJobRow extends StoredHead {
  readonly request_id: string
  readonly team_id: string
  readonly source_id: string
  readonly ingested_at: Date
  /** Encrypted credentials, see `requests`. */
  readonly presented: string | null
  readonly body: Uint8Array | null
  readonly verified: boolean
  readonly original_ip: string | null
  /** Null unless the request is a replay. */
  readonly retry_kind: string | null
  /** Whether the counts of the request already include it as an event. */
  readonly counted: boolean
  /** The ordering key of its event; null: none. */
  readonly ordering_key: string | null
  /** Null: its connection had no ordering when it was received. */
  readonly place: bigint | null
}

/** A connection with the settings for its routing jobs. */
export interface RoutedConnection {
  readonly team_id: string
  readonly destination_id: string
  readonly destination_type: string
  readonly source_id: string
  /** The source's version, which changes with the connection, and with whether its destination is enabled. */
  readonly version: number
  readonly rules: ReadonlyArray<Rule>
  /** Whether requests may become events: the connection and its destination are enabled. */
  readonly routes: boolean
}

/** The transformation that a connection's rules name; `env` is encrypted. */
export interface RoutedTransformation {
  readonly id: string
  readonly team_id: string
  readonly code: string
  readonly code_hash: string
  readonly isolation: Isolation
  readonly env: string | null
  /** A value that differs after each change. */
  readonly mark: string
}

/** The isolation of a transformation's code, as an SQL expression over its row. Pinned code overrides the setting. */
export const isolationNow = "case when isolation = 'fresh' or pinned_hash = code_hash then 'fresh' else 'sealed' end"

/** The team of a connection, which may be deleted; null: there is no such connection. It never changes. */
export const teamOfConnection = Effect.fnUntraced(function* (
  connectionId: string
): Effect.fn.Return<string | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<{ team_id: string }>`select team_id from connections where id = ${connectionId}`
  return row?.team_id ?? null
})

/** The routing jobs of a connection and its settings, all of one moment. */
export interface PendingWork {
  readonly connection: RoutedConnection
  /** Null: the rules name none, or one that does not exist. */
  readonly transformation: RoutedTransformation | null
  readonly waiting: ReadonlyArray<RoutingJobRow>
}

interface SettingsRow extends Omit<RoutedConnection, "version"> {
  readonly request_id: null
  readonly version: bigint
  readonly transformation_id: string | null
  readonly code: string
  readonly code_hash: string
  readonly isolation: Isolation
  readonly env: string | null
  readonly mark: string
}

/**
 * A connection with its routing jobs, oldest first (by their ordering positions, if it has an ordering): limited in number and
 * in bytes of bodies (the first one is always included). Null: there is no such connection. It is one statement. So a change of
 * the connection or its transformation that returned before one of these requests was received is already in the settings.
 */
export const readPendingWork = Effect.fnUntraced(function* (
  connectionId: string,
  limit: number,
  bytes: number
): Effect.fn.Return<PendingWork | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [settings, ...waiting] = yield* sql<SettingsRow | RoutingJobRow>`
    with chosen as (
      select p.request_id, p.source_id, p.counted, p.ordering_key, p.place,
        sum(r.body_size) over (order by p.place nulls first, p.request_id) - r.body_size as before
      from (
        (select * from pending_routes where connection_id = ${connectionId} and place is null
          order by connection_id, request_id limit ${limit})
        union all
        (select * from pending_routes where connection_id = ${connectionId} and place is not null
          order by connection_id, place limit ${limit})
        limit ${limit}
      ) p cross join lateral (select body_size from requests where requests.id = p.request_id limit 1) r
    )
    select null as request_id, c.team_id, c.source_id, null::timestamptz as ingested_at, null as method, null as path,
      null as query, null as headers, null as presented, null::bytea as body, null::boolean as verified, null as original_ip,
      null as retry_kind, null::boolean as counted, null as ordering_key, null::bigint as place, (select version from sources where sources.id = c.source_id) as version,
      c.destination_id, d.type as destination_type, c.rules,
      c.disabled_at is null and c.deleted_at is null and d.disabled_at is null and d.deleted_at is null as routes,
      t.id as transformation_id, t.code, t.code_hash, t.isolation, t.env, t.mark
    from connections c join destinations d on d.id = c.destination_id
      left join lateral (
        select id, code, code_hash, ${sql.literal(isolationNow)} as isolation, env, xmin::text as mark from transformations
        where transformations.id = (
            select rule ->> 'transformation_id' from jsonb_array_elements(c.rules) as rules (rule)
            where rule ->> 'transformation_id' is not null limit 1
          ) and transformations.team_id = c.team_id and transformations.deleted_at is null
        limit 1
      ) t on true
    where c.id = ${connectionId}
    union all
    select c.request_id, r.team_id, c.source_id, r.ingested_at, r.method, r.path, r.query, r.headers, r.presented, r.body, r.verified,
      r.original_ip, r.retry_kind, c.counted, c.ordering_key, c.place, null, null, null, null, null, null, null, null, null, null, null
    from chosen c cross join lateral (select * from requests where requests.id = c.request_id limit 1) r
    where c.before < ${bytes}
    order by place nulls first, request_id nulls first`
  if (settings === undefined || settings.request_id !== null) return null
  const { code, code_hash, env, isolation, mark, team_id, transformation_id: id, version, ...connection } = settings
  const { destination_id, destination_type, routes, rules, source_id } = connection
  return {
    connection: { team_id, destination_id, destination_type, source_id, version: Number(version), rules, routes },
    transformation: id === null ? null : { id, team_id, code, code_hash, isolation, env, mark },
    waiting: waiting.filter((row): row is RoutingJobRow => row.request_id !== null)
  }
})

/** A deduplication window that a request has opened: later requests with that key are duplicates until then (Unix ms). */
export interface DedupeWindow {
  readonly key: string
  readonly request_id: string
  readonly expires_at: number
}

/** Keys of one connection. */
export interface WindowLookup {
  readonly connectionId: string
  readonly keys: ReadonlyArray<string>
}

const wantedKeys = new Rows<{ readonly lookup: number; readonly connectionId: string; readonly key: string }>("w", [
  ["lookup", "int4", ({ lookup }) => lookup],
  ["connection_id", "text", ({ connectionId }) => connectionId],
  ["key", "text", ({ key }) => key]
])

/** The windows of the keys of each lookup. */
export const readDedupeWindows = Effect.fnUntraced(function* (
  lookups: ReadonlyArray<WindowLookup>
): Effect.fn.Return<ReadonlyArray<ReadonlyArray<DedupeWindow>>, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const wanted = lookups.flatMap(({ connectionId, keys }, lookup) => keys.map((key) => ({ connectionId, key, lookup })))
  const rows = yield* sql<DedupeWindow & { readonly lookup: number }>`
    select w.lookup, w.key, d.request_id, (extract(epoch from d.expires_at) * 1000)::float8 as expires_at
    from ${wantedKeys.unnest(sql, wanted)}
      cross join lateral (
        select request_id, expires_at from dedupe_keys
        where dedupe_keys.connection_id = w.connection_id and dedupe_keys.key = w.key limit 1
      ) d`
  const found: ReadonlyArray<Array<DedupeWindow>> = lookups.map(() => [])
  for (const { lookup, ...window } of rows) found[lookup]!.push(window)
  return found
})

interface Asked extends WindowLookup {
  readonly done: (outcome: Effect.Effect<ReadonlyArray<DedupeWindow>, SqlError.SqlError>) => void
}

/**
 * Reads deduplication windows for the connections of a process, several in one statement. Call it after the routing jobs have
 * been read: another owner that has stored results of some of them has then committed their windows too.
 */
export const makeWindowReader: Effect.Effect<
  (lookup: WindowLookup) => Effect.Effect<ReadonlyArray<DedupeWindow>, SqlError.SqlError>,
  never,
  HotSql
> = Effect.map(Effect.context<HotSql>(), (context) => {
  const reads = new GroupCommit<Asked>({
    commit: (asked) =>
      readDedupeWindows(asked).pipe(
        Effect.provideContext(context),
        Effect.matchCause({
          onSuccess: (found) => asked.forEach(({ done }, index) => done(Effect.succeed(found[index]!))),
          onFailure: (cause) => asked.forEach(({ done }) => done(Effect.failCause(cause)))
        })
      ),
    committed: () => {},
    concurrency: 2,
    maxRows: 400,
    maxBytes: 1024 * 1024,
    parallelFrom: 24,
    sizeOf: ({ keys }) => keys.reduce((sum, { length }) => sum + length, 0),
    run: Effect.runForkWith(context)
  })
  return (lookup) =>
    lookup.keys.length === 0 ? Effect.succeed([]) : Effect.callback((resume) => reads.add({ ...lookup, done: resume }))
})
