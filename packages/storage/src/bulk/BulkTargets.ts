import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { BulkKind } from "@tidegate/model/BulkOperation"
import { newId, prefixes } from "@tidegate/model/Ids"
import { cancelEvents } from "../delivery/CancelPending.ts"
import { retryEvents } from "./EventRetry.ts"
import * as Columns from "../journal/Columns.ts"
import { exactly, originals } from "./Originals.ts"
import { type Routing, storeReplays } from "./Replays.ts"
import type { Secrets } from "../secrets/Secrets.ts"

/* What a bulk operation does to its targets, by its kind: one step, in the transaction that removes them from its list. */

/** Bytes of request bodies that one step replays (the first request always is replayed). */
const bytesAtOnce = 2 * 1024 * 1024

/** What a step has made: those to notify. */
export interface Made {
  readonly events: ReadonlyArray<{ readonly id: string; readonly destination_id: string }>
  readonly requests: ReadonlyArray<{
    readonly id: string
    readonly connections: ReadonlyArray<string>
    readonly workflows: ReadonlyArray<string>
  }>
  /** The destinations of events that are no longer to be delivered. */
  readonly cancelled: ReadonlyArray<string>
}

export const nothing: Made = { events: [], requests: [], cancelled: [] }

/** The result for targets: how many were processed, and which are left for another step. */
export interface CarriedOut extends Made {
  readonly done: number
  readonly left: ReadonlyArray<string>
}

/** The kinds of operations on runs: the actors of their workflows handle the targets. See `RunTargets.ts`. */
export type RunKind = Extract<BulkKind, `workflow_run_${string}`>

export const isOfRuns = (type: BulkKind): type is RunKind =>
  type === "workflow_run_bulk_retry" || type === "workflow_run_bulk_cancel"

/** The targets of a step. */
export interface Targets {
  readonly type: Exclude<BulkKind, RunKind>
  readonly team_id: string
  readonly operation_id: string
  readonly ids: ReadonlyArray<string>
  /** For retries of events: whether to leave out events that another retry has resolved meanwhile. */
  readonly unresolved: boolean
  /** The time over which its results come due (ms). */
  readonly overMs: number
}

const replayed = Effect.fnUntraced(function* (
  { operation_id, team_id }: Targets,
  wanted: ReadonlyArray<{ readonly target: string; readonly request: string; readonly only?: string }>,
  routing: Routing
): Effect.fn.Return<CarriedOut, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const requests = [...new Set(wanted.map(({ request }) => request))]
  const { found, left } = yield* originals(team_id, requests, bytesAtOnce)
  const isLeft = new Set(left)
  const byId = new Map(found.map((one) => [one.id, one]))
  const now = yield* Clock.currentTimeMillis
  const replays = wanted.flatMap(({ only, request }) => {
    const one = byId.get(request)
    if (one === undefined) return []
    const replay = exactly(one, newId(prefixes.request, now), { kind: "bulk", operation_id })
    return [only === undefined ? replay : { ...replay, only: [only] }]
  })
  const stored = replays.length === 0 ? [] : yield* storeReplays(replays, routing)
  const made = stored.flatMap((one) =>
    typeof one === "object" ? [{ id: one.request_id, connections: one.connections, workflows: one.workflows }] : []
  )
  return {
    ...nothing,
    requests: made,
    done: made.length,
    left: wanted.flatMap(({ request, target }) => (isLeft.has(request) ? [target] : []))
  }
})

/** The requests of ignored events, and the connection that ignored each. */
const ignored = Effect.fnUntraced(function* ({ ids, team_id }: Targets) {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  return yield* sql<{ target: string; request: string; only: string }>`
    select id as target, request_id as request, connection_id as only from ignored_events
    where id = any(${Columns.text(ids)}) and id >= ${first} and id <= ${last} and team_id = ${team_id} order by id`
})

/**
 * Cancels events that wait. An event whose row is locked, because its attempt is being recorded, is left: the next step sees the
 * result.
 */
const cancelled = Effect.fnUntraced(function* ({
  ids,
  team_id
}: Targets): Effect.fn.Return<CarriedOut, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  const mine = sql`e.id = any(${Columns.text(ids)}) and e.id >= ${first} and e.id <= ${last} and e.team_id = ${team_id}
    and e.state = 'PENDING'`
  const before = yield* sql<{ id: string; destination_id: string }>`
    select e.id, e.destination_id from events e where ${mine}`
  if (before.length === 0) return { ...nothing, done: 0, left: [] }
  const done = yield* cancelEvents(
    sql,
    sql`select e.id, e.team_id, e.connection_id, e.source_id, e.destination_id from events e where ${mine}
      order by e.id for update skip locked`,
    "CANCELLED"
  )
  const left =
    done === before.length
      ? []
      : (yield* sql<{ id: string }>`select e.id from events e where ${mine}`).map(({ id }) => id)
  return { ...nothing, cancelled: [...new Set(before.map((event) => event.destination_id))], done, left }
})

/**
 * Runs an operation on some of its targets, the oldest first. To be called in the transaction that removes them from its list.
 */
export const carryOut = Effect.fnUntraced(function* (
  targets: Targets,
  routing: Routing
): Effect.fn.Return<CarriedOut, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const { ids, operation_id, overMs, team_id, type, unresolved } = targets
  switch (type) {
    case "event_bulk_retry": {
      const options = { team_id, event_ids: ids, operation_id, overMs, unresolved, shardOf: routing.shardOf }
      const events = yield* retryEvents(options)
      return { ...nothing, events, done: events.length, left: [] }
    }
    case "event_bulk_cancel":
      return yield* cancelled(targets)
    case "request_bulk_retry":
      return yield* replayed(
        targets,
        ids.map((id) => ({ target: id, request: id })),
        routing
      )
    default:
      return yield* replayed(targets, yield* ignored(targets), routing)
  }
})
