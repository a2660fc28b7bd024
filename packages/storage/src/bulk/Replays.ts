import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type ErrorCode, fail, type GatewayError } from "@tidegate/model/GatewayError"
import { derivedId, idTime, prefixes } from "@tidegate/model/Ids"
import type { Message } from "@tidegate/model/Message"
import type { Ordering } from "@tidegate/model/Ordering"
import { systemType } from "@tidegate/model/SystemSource"
import * as Columns from "../journal/Columns.ts"
import { Rows } from "../journal/Rows.ts"
import { minuteOfId, writeCounts } from "../journal/CountStatement.ts"
import { nextPosition } from "../delivery/OrderingKeys.ts"
import { withPartitions } from "../retention/Partitions.ts"
import { openPresented, sealPresented } from "../secrets/PresentedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { query } from "../Transaction.ts"
import { keepForRuns } from "../workflows/WorkflowLinks.ts"

/**
 * A request to be repeated as a new one of the source. It is not verified again: it keeps the original result, and its signature
 * may have expired.
 */
export interface Replay {
  readonly team_id: string
  readonly source_id: string
  /** The id of the new request. A repeated replay with the same id changes nothing. */
  readonly id: string
  readonly message: Message
  /** The encrypted credentials of the request `presentedOf`, as stored with it. */
  readonly presented: string | null
  readonly presentedOf: string
  readonly verified: boolean
  readonly original_ip: string | null
  readonly external_id: string | null
  /** Null: it does not repeat a request; a workflow step has made it. */
  readonly retry: {
    readonly kind: "single" | "bulk"
    readonly parent_request_id: string
    readonly operation_id: string | null
  } | null
  /** The connections to replay to; by default all connections and workflows. With a list of connections no runs begin. */
  readonly only?: ReadonlyArray<string>
  /** The fixture that is replayed; its count goes up. */
  readonly fixture_id?: string
  /** It is an event of the gateway itself. Nothing else may make a request of a system source, but repeat one. */
  readonly isSystem?: boolean
}

/** The result of a replay: the connections that it waits at, and the workflows with new runs. */
export interface Replayed {
  readonly request_id: string
  readonly created_at: Date
  readonly connections: ReadonlyArray<string>
  readonly workflows: ReadonlyArray<string>
}

/** What the replay needs beside rows. */
export interface Routing {
  /** The shard of the actor of a connection, destination or workflow. */
  readonly shardOf: (id: string) => number
  /** The ordering key of the request for a connection with this ordering; null: none. */
  readonly orderingKeyOf: (ordering: Ordering, message: Message) => string | null
}

/**
 * A run has the time of its request. When the request is older than this (ms), the version of the workflow has to be kept for the
 * run.
 */
const lateMs = 60_000

interface Route {
  readonly id: string
  readonly source_id: string
  readonly ordering: Ordering | null
}

interface RunsOf {
  readonly id: string
  readonly source_id: string
  readonly version: number
  readonly steps: number
}

/** Why a replay is not made: 409 with this code. */
type Refused = Extract<ErrorCode, "SOURCE_DISABLED" | "CONNECTION_DISABLED">

const sealedFor = (secrets: Secrets["Service"], { id, presented, presentedOf, team_id }: Replay): string | null => {
  if (presented === null) return null
  const opened = openPresented(secrets, { team_id, id: presentedOf }, presented)
  // Fails closed: they cannot be decrypted for the new request either, and a target is never sent a mask instead of a credential.
  return opened === null ? presented : sealPresented(secrets, { team_id, id }, opened)
}

/** A replay that is made. */
interface Made {
  readonly replay: Replay
  /** How many connections it goes to. */
  readonly routes: number
  /** Its credentials, sealed for the new request. */
  readonly sealed: string | null
}

const replayed = new Rows<Made>("r", [
  ["id", "text", ({ replay }) => replay.id],
  ["team_id", "text", ({ replay }) => replay.team_id],
  ["source_id", "text", ({ replay }) => replay.source_id],
  ["verified", "bool", ({ replay }) => replay.verified],
  ["method", "text", ({ replay }) => replay.message.method],
  ["path", "text", ({ replay }) => replay.message.path],
  ["query", "text", ({ replay }) => replay.message.query],
  ["headers", "text", ({ replay }) => JSON.stringify(replay.message.headers)],
  ["presented", "text", ({ sealed }) => sealed],
  ["body", "bytea", ({ replay }) => replay.message.body],
  ["external_id", "text", ({ replay }) => replay.external_id],
  ["original_ip", "text", ({ replay }) => replay.original_ip],
  ["routes", "int4", ({ routes }) => routes],
  ["kind", "text", ({ replay }) => replay.retry?.kind ?? null],
  ["parent_id", "text", ({ replay }) => replay.retry?.parent_request_id ?? null],
  ["operation_id", "text", ({ replay }) => replay.retry?.operation_id ?? null]
])

const ofFixtures = new Rows<Made>("r", [
  ["id", "text", ({ replay }) => replay.id],
  ["fixture_id", "text", ({ replay }) => replay.fixture_id ?? null]
])

/** The routing job of a replay on a connection. */
const jobs = new Rows<{
  readonly replay: Replay
  readonly route: Route
  readonly shard: number
  readonly key: string | null
}>("p", [
  ["shard", "int2", ({ shard }) => shard],
  ["connection_id", "text", ({ route }) => route.id],
  ["request_id", "text", ({ replay }) => replay.id],
  ["key", "text", ({ key }) => key],
  ["in_order", "bool", ({ route }) => route.ordering !== null]
])

/** The run that a replay begins of a workflow. */
const begunRuns = new Rows<{
  readonly id: string
  readonly request: string
  readonly workflow: RunsOf
  readonly shard: number
}>("w", [
  ["run_id", "text", ({ id }) => id],
  ["request_id", "text", ({ request }) => request],
  ["workflow_id", "text", ({ workflow }) => workflow.id],
  ["version", "int4", ({ workflow }) => workflow.version],
  ["steps", "int2", ({ workflow }) => workflow.steps],
  ["shard", "int2", ({ shard }) => shard]
])

/**
 * Stores replays of one team, each with a routing job for every connection and a run for every workflow that it goes to. Their
 * actors decide the rest with the current rules. Sources are locked against changes, so that the connections are the current
 * ones. To be called in a transaction.
 */
export const storeReplays = Effect.fnUntraced(function* (
  replays: ReadonlyArray<Replay>,
  { orderingKeyOf, shardOf }: Routing
): Effect.fn.Return<ReadonlyArray<Replayed | Refused>, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const secrets = yield* Secrets
  const now = new Date(yield* Clock.currentTimeMillis)
  const sourceIds = Columns.text([...new Set(replays.map(({ source_id }) => source_id))])
  const sources = yield* sql<{ id: string; team_id: string; type: string }>`
    select id, team_id, type from sources where id = any(${sourceIds}) and disabled_at is null and deleted_at is null
    order by id for share`
  const sourceOf = new Map(sources.map((source) => [source.id, source]))
  const takes = ({ fixture_id, isSystem, retry, source_id, team_id }: Replay): boolean => {
    const source = sourceOf.get(source_id)
    if (source === undefined || source.team_id !== team_id) return false
    return source.type !== systemType || isSystem === true || retry !== null || fixture_id !== undefined
  }
  const routes = yield* sql<Route>`
    select c.id, c.source_id, c.ordering from connections c join destinations d on d.id = c.destination_id
    where c.source_id = any(${sourceIds}) and c.disabled_at is null and c.deleted_at is null
      and d.disabled_at is null and d.deleted_at is null
    order by c.id`
  const workflows = yield* sql<RunsOf>`
    select id, source_id, version, jsonb_array_length(steps) as steps from workflows
    where source_id = any(${sourceIds}) and deleted_at is null and status in ('active', 'paused') order by id`

  const decided = replays.map((replay) => {
    if (!takes(replay)) return { replay, routes: [], begun: [], refused: "SOURCE_DISABLED" as const }
    const { only } = replay
    const own = routes.filter((route) => route.source_id === replay.source_id && (only?.includes(route.id) ?? true))
    const refused = only !== undefined && own.length < new Set(only).size ? ("CONNECTION_DISABLED" as const) : null
    const begun = only === undefined ? workflows.filter(({ source_id }) => source_id === replay.source_id) : []
    return { replay, routes: own, begun, refused }
  })
  const made = decided.filter(({ refused }) => refused === null)
  if (made.length > 0) {
    const pending = made.flatMap(({ replay, routes }) =>
      routes.map((route) => ({
        replay,
        route,
        shard: shardOf(route.id),
        key: route.ordering === null ? null : orderingKeyOf(route.ordering, replay.message)
      }))
    )
    const runs = made.flatMap(({ begun, replay: { id } }) =>
      begun.map((workflow) => ({
        id: derivedId(prefixes.workflowRun, id, workflow.id),
        request: id,
        workflow,
        shard: shardOf(workflow.id)
      }))
    )
    const all = made.map(({ replay, routes }) => ({
      replay,
      routes: routes.length,
      sealed: sealedFor(secrets, replay)
    }))
    yield* sql`
      with made as (
        insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, presented, body, body_size,
          external_id, original_ip, events_count, ignored_count, retry_kind, retry_parent_request_id, retry_operation_id, retried_at,
          ingested_at, created_at, updated_at)
        select r.id, r.team_id, r.source_id, 'accepted', r.verified, r.method, r.path, r.query, r.headers, r.presented, r.body,
          length(r.body), r.external_id, r.original_ip, r.routes, 0, r.kind, r.parent_id, r.operation_id,
          case when r.kind is not null then ${now}::timestamptz end, ${now}, ${now}, ${now}
        from ${replayed.unnest(sql, all)}
        on conflict (id) do nothing
        returning id, team_id, source_id
      ), waiting as (
        insert into pending_routes (shard, connection_id, request_id, team_id, source_id, created_at, counted, ordering_key, place)
        select p.shard, p.connection_id, p.id, p.team_id, p.source_id, ${now}, true, p.key,
          case when p.in_order then ${sql.literal(nextPosition)} end
        from (
          select p.*, made.id, made.team_id, made.source_id
          from ${jobs.unnest(sql, pending, "nth")}
            join made on made.id = p.request_id
          order by p.nth
        ) p
      ), begun as materialized (
        select w.run_id, w.workflow_id, w.version, w.steps, w.shard, made.id, made.team_id, made.source_id
        from ${begunRuns.unnest(sql, runs)} join made on made.id = w.request_id
      ), runs as (
        insert into workflow_runs (id, team_id, workflow_id, request_id, source_id, version, status, steps_count, created_at, updated_at)
        select run_id, team_id, workflow_id, id, source_id, version, 'queued', steps, ${now}, ${now} from begun
      ), queued as (
        insert into workflow_queue (run_id, team_id, shard, workflow_id, due_at)
        select run_id, team_id, shard, workflow_id, ${now} from begun
      ), of_fixtures as (
        update request_fixtures f set replay_count = f.replay_count + 1, last_replayed_at = greatest(f.last_replayed_at, ${now})
        from made join ${ofFixtures.unnest(sql, all)}
          on r.id = made.id
        where f.id = r.fixture_id and f.team_id = made.team_id
      )
      ${sql.literal(writeCounts(acceptedCounts))}`
    // A workflow step makes one request, however much later the step is repeated.
    const late = runs.filter(({ request }) => (idTime(request) ?? 0) < now.getTime() - lateMs)
    if (late.length > 0) {
      yield* keepForRuns(
        sql,
        late.map(({ workflow }) => workflow)
      )
    }
  }
  return decided.map(({ begun, refused, replay, routes }) => {
    if (refused !== null) return refused
    const connections = routes.map(({ id }) => id)
    return { request_id: replay.id, created_at: now, connections, workflows: begun.map(({ id }) => id) }
  })
})

const acceptedCounts = `(
  select source_id as key_id, null::text as source_id, null::text as destination_id, 'accepted' as measure, ${minuteOfId("id")} as minute,
    team_id, count(*) as n
  from made group by 1, 5, 6
) as c`

const refusals: { readonly [code in Refused]: GatewayError } = {
  SOURCE_DISABLED: fail("SOURCE_DISABLED", "the source of the request is disabled or deleted"),
  CONNECTION_DISABLED: fail(
    "CONNECTION_DISABLED",
    "the source has no such connection that is enabled and has an enabled destination"
  )
}

/** Stores one replay, in a separate transaction. */
export const storeReplay = Effect.fnUntraced(function* (
  replay: Replay,
  routing: Routing
): Effect.fn.Return<Replayed, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const [stored] = yield* query(withPartitions(sql)(sql.withTransaction(storeReplays([replay], routing))))
  return typeof stored === "object" ? stored : yield* refusals[stored!]
})
