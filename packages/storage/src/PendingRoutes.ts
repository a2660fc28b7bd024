import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Rule } from "@tidegate/model/Rule"
import { HotSql, JournalSql } from "./Database.ts"
import * as Columns from "./journal/Columns.ts"
import { controlSlot } from "./RollupSlot.ts"

/** A request that waits for its connection's slow rules. */
export interface PendingRouteRow {
  readonly request_id: string
  readonly team_id: string
  readonly source_id: string
  readonly ingested_at: Date
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: string
  readonly body: Uint8Array | null
}

/** The connection as it is now, with its pending routes, oldest first; null when there is no such connection. */
export const readPendingRoutes = Effect.fnUntraced(function* (
  connectionId: string,
  limit: number
): Effect.fn.Return<
  {
    readonly connection: {
      readonly destination_id: string
      readonly rules: ReadonlyArray<Rule>
      /** Whether a request may become an event on it: it and its destination are enabled. */
      readonly routes: boolean
    }
    readonly waiting: ReadonlyArray<PendingRouteRow>
  } | null,
  SqlError.SqlError,
  HotSql
> {
  const sql = yield* HotSql
  const [connection] = yield* sql<{ destination_id: string; rules: ReadonlyArray<Rule>; routes: boolean }>`
    select c.destination_id, c.rules,
      c.disabled_at is null and c.deleted_at is null and d.disabled_at is null and d.deleted_at is null as routes
    from connections c join destinations d on d.id = c.destination_id where c.id = ${connectionId}`
  if (connection === undefined) return null
  const waiting = yield* sql<PendingRouteRow>`
    select p.request_id, p.team_id, p.source_id, r.ingested_at, r.method, r.path, r.query, r.headers, r.body
    from (
      select * from pending_routes where connection_id = ${connectionId} order by connection_id, request_id limit ${limit}
    ) p cross join lateral (select * from requests where requests.id = p.request_id limit 1) r
    order by p.request_id`
  return { connection, waiting }
})

/** What becomes of one pending route. `eventId` and `ignoredId` are derived, so a repeated step finds them taken. */
export type Settled =
  | { readonly kind: "event"; readonly requestId: string; readonly eventId: string; readonly dueAt: number }
  | {
      readonly kind: "ignored"
      readonly requestId: string
      readonly ignoredId: string
      readonly cause: string
      readonly meta: string
    }
  /** The connection takes no requests any more. */
  | { readonly kind: "dropped"; readonly requestId: string }

/**
 * Replaces pending routes by what became of them, in one statement: the deleted rows drive the inserts, so a route that
 * somebody else has settled meanwhile is settled once. Answers the ids of the events made.
 */
export const settlePendingRoutes = Effect.fnUntraced(function* (options: {
  readonly connectionId: string
  readonly destinationId: string
  readonly shard: number
  readonly now: number
  readonly settled: ReadonlyArray<Settled>
}): Effect.fn.Return<void, SqlError.SqlError, JournalSql> {
  const sql = yield* JournalSql
  const { connectionId, destinationId, now, settled, shard } = options
  const column = <A>(of: (one: Settled) => A): Array<A> => settled.map(of)
  const at = new Date(now)
  const ids = Columns.text(column((one) => one.requestId))
  yield* sql`
    with s as (
      select * from unnest(
        ${ids}, ${Columns.text(column((one) => one.kind))},
        ${Columns.text(column((one) => (one.kind === "event" ? one.eventId : one.kind === "ignored" ? one.ignoredId : null)))},
        ${Columns.timestamptz(column((one) => (one.kind === "event" ? one.dueAt : null)))},
        ${Columns.text(column((one) => (one.kind === "ignored" ? one.cause : null)))},
        ${Columns.text(column((one) => (one.kind === "ignored" ? one.meta : null)))}
      ) as t (request_id, kind, id, due_at, cause, meta)
    ), taken as (
      delete from pending_routes p using s
      where p.connection_id = ${connectionId} and p.request_id = any(${ids})
        and p.request_id = s.request_id
      returning p.request_id, p.team_id, p.source_id, p.created_at, s.kind, s.id, s.due_at, s.cause, s.meta
    ), made as (
      insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, trigger, due_at,
        ingested_at, created_at, updated_at)
      select id, team_id, request_id, ${connectionId}, source_id, ${destinationId}, 'PENDING', 'INITIAL', due_at,
        created_at, ${at}, ${at}
      from taken where kind = 'event'
    ), queued as (
      insert into deliveries (event_id, shard, destination_id, connection_id, due_at)
      select id, ${shard}::int2, ${destinationId}, ${connectionId}, due_at from taken where kind = 'event'
    ), passed as (
      insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
      select id, team_id, request_id, ${connectionId}, source_id, cause, meta::jsonb, ${at}
      from taken where kind = 'ignored'
    ), counted as (
      insert into rollups (key_id, measure, minute, slot, team_id, count)
      select ${connectionId}, case kind when 'event' then 'created' else 'ignored' end,
        date_trunc('minute', case kind when 'event' then ${at} else created_at end), ${controlSlot}::int2, team_id, count(*)
      from taken where kind <> 'dropped' group by 2, 3, team_id
      on conflict (key_id, measure, minute, slot) do update set count = rollups.count + excluded.count
    )
    update requests set
      events_count = events_count + (case taken.kind when 'event' then 1 else 0 end),
      ignored_count = ignored_count + (case taken.kind when 'ignored' then 1 else 0 end)
    from taken where requests.id = any(${ids}) and requests.id = taken.request_id and taken.kind <> 'dropped'`
})
