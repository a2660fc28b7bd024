import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { StoredHead } from "@tidegate/model/Message"
import { idBound, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import { payloadGone } from "../Tables.ts"

/**
 * Steps of runs that wait for a request at a source. While a workflow has such steps, each request of the source is also stored as an
 * arrival for the workflow (`Arrivals.ts`), in the commit that accepts the request.
 */

/** The limits of waiting steps. */
export const maxWaits = { source: 1_000, team: 10_000 } as const

/** How many requests are checked for a new wait, because they arrived after its step began and before its row was stored. */
const maxLookedAt = 10_000

/** A source is watched this long (ms) for a workflow none of whose steps waits any more, so that ingress seldom loads it again. */
const lingerMs = 10 * 60_000

/** Longer (ms) than a statement that accepts requests may take (`Database.ts`). */
const longestAccept = 30_000

const day = 86_400_000

export interface EventWait {
  readonly run_id: string
  readonly step_id: string
  readonly source_id: string
  /** JSON; null: any request. */
  readonly filter: string | null
  readonly since: Date
  readonly expires_at: Date
}

interface Registration {
  readonly team_id: string
  readonly workflow_id: string
  readonly shard: number
  readonly run_id: string
  readonly step_id: string
  readonly source_id: string
  readonly filter: string | null
  /** Unix ms. */
  readonly since: number
  readonly until: number
}

/** The arrival that makes the workflow look for earlier requests. */
const lookFor = ({ run_id, step_id }: Pick<EventWait, "run_id" | "step_id">): string => `${run_id}/${step_id}`

/** The wait that an arrival is about; null: it is about something else. */
export const lookedFor = (about: string): Pick<EventWait, "run_id" | "step_id"> | null => {
  const at = about.indexOf("/")
  return at < 0 ? null : { run_id: about.slice(0, at), step_id: about.slice(at + 1) }
}

/**
 * Stores that a step waits. `full`: as many steps wait as may. `gone`: the source is deleted. Repeated for the same step, it changes nothing.
 *
 * No request is lost. One whose arrival is stored finds the wait. For others there is a look at the requests since `since` after this
 * commit. When ingress learns only now that the workflow waits, there is another look, after statements that did not know it have ended.
 */
export const registerWait = Effect.fnUntraced(function* ({
  filter,
  run_id,
  shard,
  since,
  source_id,
  step_id,
  team_id,
  until,
  workflow_id
}: Registration): Effect.fn.Return<"stored" | "full" | "gone", SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const now = yield* Clock.currentTimeMillis
  const isFull = sql<{ full: boolean }>`
    select (select count(*) from (select from workflow_waits where source_id = ${source_id} and expires_at > ${new Date(now)}
        limit ${maxWaits.source}) s) >= ${maxWaits.source}
      or (select count(*) from (select from workflow_waits where team_id = ${team_id} and expires_at > ${new Date(now)}
        limit ${maxWaits.team}) t) >= ${maxWaits.team} as full
    where not exists (select from workflow_waits where run_id = ${run_id} and step_id = ${step_id})`
  return yield* sql.withTransaction(
    Effect.gen(function* (): Effect.fn.Return<"stored" | "full" | "gone", SqlError.SqlError, SqlClient.SqlClient> {
      const [source] = yield* sql`
        select from sources where id = ${source_id} and team_id = ${team_id} and deleted_at is null`
      if (source === undefined) return "gone"
      if ((yield* isFull)[0]?.full === true) {
        // Steps of runs that have ended otherwise, for example cancelled ones.
        yield* sql`delete from workflow_waits w where w.team_id = ${team_id}
          and not exists (select from workflow_queue q where q.run_id = w.run_id)`
        if ((yield* isFull)[0]?.full === true) return "full"
      }
      // Also locks the row against its removal (`forgetSource`).
      const [awaited] = yield* sql<{ added: boolean }>`
        insert into workflow_awaited as a (source_id, workflow_id, team_id, used_at, expires_at)
        values (${source_id}, ${workflow_id}, ${team_id}, ${new Date(now)}, ${new Date(until + day)})
        on conflict (source_id, workflow_id) do update
          set used_at = excluded.used_at, expires_at = greatest(a.expires_at, excluded.expires_at)
        returning xmax = 0 as added`
      const added = awaited?.added === true
      if (added) yield* sql`update sources set version = version + 1 where id = ${source_id}`
      yield* sql`
        insert into workflow_waits (run_id, step_id, workflow_id, team_id, source_id, filter, since, expires_at)
        values (${run_id}, ${step_id}, ${workflow_id}, ${team_id}, ${source_id}, ${filter}::json, ${new Date(since)}, ${new Date(until)})
        on conflict (run_id, step_id) do update
          set source_id = excluded.source_id, filter = excluded.filter, since = excluded.since, expires_at = excluded.expires_at`
      yield* sql`
        insert into workflow_arrivals (workflow_id, about, team_id, shard, due_at, again_at, expires_at)
        values (${workflow_id}, ${lookFor({ run_id, step_id })}, ${team_id}, ${shard}::int2, ${new Date(now)}::timestamptz,
          ${added ? new Date(now + longestAccept) : null}::timestamptz, ${new Date(until + day)}::timestamptz)
        on conflict (workflow_id, about) do update set due_at = excluded.due_at,
          again_at = coalesce(excluded.again_at, workflow_arrivals.again_at)`
      return "stored"
    })
  )
})

/** The steps of the workflow that wait at these sources, the longest waiting first. */
export const waitsAt = Effect.fnUntraced(function* (
  workflowId: string,
  sourceIds: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<EventWait>, SqlError.SqlError, SqlClient.SqlClient> {
  if (sourceIds.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  return yield* sql<EventWait>`
    select run_id, step_id, source_id, filter::text as filter, since, expires_at from workflow_waits
    where workflow_id = ${workflowId} and source_id = any(${Columns.text(sourceIds)})
    order by since, run_id, step_id limit ${maxWaits.team}`
})

/** Null: the step does not wait any more. */
export const readWait = Effect.fnUntraced(function* (
  workflowId: string,
  { run_id, step_id }: Pick<EventWait, "run_id" | "step_id">
): Effect.fn.Return<EventWait | null, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<EventWait>`
    select run_id, step_id, source_id, filter::text as filter, since, expires_at from workflow_waits
    where run_id = ${run_id} and step_id = ${step_id} and workflow_id = ${workflowId}`
  return row ?? null
})

/** A wait that has ended, or whose step does not wait any more. */
export const endWait = ({ run_id, step_id }: Pick<EventWait, "run_id" | "step_id">) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`delete from workflow_waits where run_id = ${run_id} and step_id = ${step_id}`
  )

/** An accepted request of a team, as it is stored. */
export interface ArrivedRequest extends StoredHead {
  readonly id: string
  readonly source_id: string
  readonly ingested_at: Date
  readonly body: Uint8Array | null
}

/** The bytes of bodies that are read at once; the first request always is. */
const readBytes = 8 * 1024 * 1024

/** Those of these requests that fit together, in their order, and the id of the last of them that was looked for. */
export const arrivedRequests = Effect.fnUntraced(function* (
  team_id: string,
  ids: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<ArrivedRequest>, SqlError.SqlError, SqlClient.SqlClient> {
  if (ids.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const [first, last] = Columns.bounds(ids)
  return yield* sql<ArrivedRequest>`
    with sized as materialized (
      select r.id, sum(r.body_size) over (order by r.id) - r.body_size as before from requests r
      where r.id = any(${Columns.text(ids)}) and r.id >= ${first} and r.id <= ${last} and r.team_id = ${team_id}
    )
    select r.id, r.source_id, r.method, r.path, r.query, r.headers, r.body, r.ingested_at
    from sized cross join lateral (select * from requests where requests.id = sized.id limit 1) r
    where sized.before < ${readBytes} and r.status = 'accepted' and r.headers <> ${payloadGone} order by r.id`
})

/** The ids of the accepted requests that may end the wait, after a given one, in their order. */
export const requestsFor = Effect.fnUntraced(function* (
  team_id: string,
  { expires_at, since, source_id }: EventWait,
  after: string | null,
  limit: number
): Effect.fn.Return<ReadonlyArray<string>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // An id has the time at which the request arrived.
  const rows = yield* sql<{ id: string }>`
    select id from requests
    where source_id = ${source_id} and id >= ${idBound(prefixes.request, since.getTime())}
      and id < ${idBound(prefixes.request, expires_at.getTime())} and id > ${after ?? ""}
      and team_id = ${team_id} and status = 'accepted'
    order by source_id, id limit ${limit}`
  return rows.map(({ id }) => id)
})

export { maxLookedAt }

/** Ingress stores no more arrivals for the workflow when none of its steps has waited at the source for a while. */
export const forgetSource = Effect.fnUntraced(function* (
  workflowId: string,
  source_id: string
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const before = new Date((yield* Clock.currentTimeMillis) - lingerMs)
  // A wait that is stored at the same moment raises "used_at" first. A row that retention has removed is unknown to ingress as well.
  yield* sql`
    with gone as (
      delete from workflow_awaited where source_id = ${source_id} and workflow_id = ${workflowId} and used_at < ${before}
        and not exists (select from workflow_waits where source_id = ${source_id} and workflow_id = ${workflowId})
      returning source_id
    )
    update sources set version = version + 1 where id = ${source_id} and (
      exists (select from gone)
      or not exists (select from workflow_awaited where source_id = ${source_id} and workflow_id = ${workflowId})
    )`
})
