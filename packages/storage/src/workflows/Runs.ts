import { Effect } from "effect"
import type { SqlError } from "effect/sql"
import { idBound, idTime, prefixes } from "@tidegate/model/Ids"
import type { StoredHead } from "@tidegate/model/Message"
import { completeTriggers, type WorkflowTriggers } from "@tidegate/model/WorkflowTriggers"
import type { Edge, Step } from "@tidegate/workflows/Definition"
import { batchBytes } from "@tidegate/workflows/triggers/Batch"
import { HotSql } from "../Database.ts"
import * as Columns from "../journal/Columns.ts"
import { type BatchedInput, inputBytes } from "./BatchInputs.ts"

/** The rows of a workflow's queue of runs. */

/** A run to continue, with what it needs. */
export interface DueRun extends StoredHead {
  readonly id: string
  readonly team_id: string
  readonly request_id: string
  readonly source_id: string
  readonly source_name: string
  readonly version: number
  readonly parts: number
  readonly attempts: number
  /** Characters of its steps' outputs. */
  readonly kept: number
  readonly status: "queued" | "running"
  readonly created_at: Date
  readonly due_at: Date
  /**
   * State that a run saved before a long wait, as lines. The first one is a JSON with the `part` (number of the last journal
   * entry) that it includes.
   */
  readonly carried: string | null
  /** The run whose batch it carries out; null: it is not one of a batch. */
  readonly batch_id: string | null
  /** The inputs of the runs in its batch, which are read together with the run. */
  readonly batch?: ReadonlyArray<BatchedInput>
  /** How many runs are due, up to the limit, including those left out for their bytes. */
  readonly found: number
  readonly ingested_at: Date
  readonly body: Uint8Array | null
  /** Encrypted credentials, see `requests`. */
  readonly presented: string | null
}

/** The bytes of a run that was read. */
export const bytesOf = ({ batch = [], body, carried, headers, kept }: DueRun): number =>
  batch.reduce(
    (sum, one) => sum + inputBytes(one),
    (body?.length ?? 0) + headers.length + (carried?.length ?? 0) + kept
  )

/** The current state of a workflow for its runs. */
export interface RunningWorkflow {
  readonly team_id: string
  readonly status: "draft" | "active" | "paused" | "disabled"
  readonly deleted: boolean
  /** Of `dueRuns` only. */
  readonly triggers?: WorkflowTriggers | null
}

/** The work of a workflow. */
export interface DueWork {
  readonly running: RunningWorkflow
  readonly runs: ReadonlyArray<DueRun>
  /** When the next of its runs comes due (Unix ms); null: none waits. */
  readonly next: number | null
  /** Targets of its team's actions that take nothing more, and until when (Unix ms), as it is stored. */
  readonly held: ReadonlyMap<string, number>
}

interface Running {
  readonly running_team: string
  readonly running_status: RunningWorkflow["status"]
  readonly running_deleted: boolean
  readonly running_next: Date | null
  /** Only in the first row, like the hold. The values of older rows are not complete. */
  readonly running_triggers: WorkflowTriggers | null
  readonly running_held: Readonly<Record<string, number>> | null
}

/** A row without a run has only the workflow. */
type DueRow = Running & (DueRun | { readonly id: null })

/** Which runs are read, and how many. */
interface DueLimits {
  readonly limit: number
  readonly bytes: number
  /** Runs that are left out. */
  readonly inHand: ReadonlyArray<string>
  /** Runs that were due before this time (Unix ms) are left out; absent: none are. */
  readonly from?: number
}

/**
 * A workflow with its due runs, the longest due first, up to a number of bytes (the first run always is included): those of their
 * requests and of their steps' outputs. None while the workflow is paused or deleted; all of them, whenever they are due, when it
 * is disabled. Runs that the caller has in hand are left out. A run has the input of its request, or its own (`RunInputs`). `headers`
 * is empty when retention has removed it. Null: there is no workflow.
 */
export const dueRuns = Effect.fnUntraced(function* (
  shard: number,
  workflowId: string,
  now: number,
  { bytes, from = 0, inHand, limit }: DueLimits
): Effect.fn.Return<DueWork | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  // The server hashes the rows of a subquery once. An array it would compare with each run, which costs as much as reading them.
  const isInHand = sql`run_id in (select unnest(${Columns.text(inHand)}))`
  // Only these runs look for an input of their own: a run of a request costs nothing more.
  const ownInput = sql.literal(`r.request_id >= '${prefixes.workflowRun}'`)
  const rows = yield* sql<DueRow>`
    with running as materialized (
      select team_id, status, deleted_at is not null as deleted, triggers, (
          select due_at from workflow_queue
          where shard = ${shard} and workflow_id = ${workflowId} and due_at > ${new Date(now)}
          order by shard, workflow_id, due_at limit 1
        ) as next, (
          select json_object_agg(target, (extract(epoch from held_until) * 1000)::int8) from action_holds h
          where h.team_id = workflows.team_id and h.held_until > ${new Date(now)}
        ) as held from workflows where id = ${workflowId}
    ), due as (
      select run_id, due_at, carried from workflow_queue
      where shard = ${shard} and workflow_id = ${workflowId} and due_at <= (
          select case when deleted or status = 'paused' then '-infinity' when status = 'active' then ${new Date(now)}::timestamptz
            else 'infinity' end from running
        )
        and due_at >= ${new Date(from)}
        and not (${isInHand})
      order by due_at, run_id limit ${limit}
    ), read as (
      select d.due_at, d.carried, r.id, r.team_id, r.request_id, r.source_id, r.version, r.parts, r.attempts, r.kept, r.status, r.created_at, r.batch_id,
        coalesce(q.method, i.method, '') as method, coalesce(q.path, i.path, '') as path, coalesce(q.query, i.query, '') as query,
        coalesce(q.headers, i.headers, '') as headers, coalesce(q.body, i.body) as body, q.presented,
        coalesce(q.ingested_at, i.ingested_at, r.created_at) as ingested_at,
        row_number() over due as place, (count(*) over ())::int4 as found, sum(size) over due - size as before
      from due d
        cross join lateral (select * from workflow_runs where workflow_runs.id = d.run_id limit 1) r
        left join lateral (select * from requests where requests.id = r.request_id limit 1) q on true
        left join lateral (select * from workflow_inputs i where i.run_id = r.request_id and ${ownInput}) i on true
        cross join lateral (select coalesce(q.body_size, i.body_size, 0) + r.kept + coalesce(octet_length(d.carried), 0)
          + case when r.batch_id is null then 0 else ${batchBytes} end as size) s
      window due as (order by d.due_at, d.run_id)
    )
    select running.team_id as running_team, running.status as running_status, running.deleted as running_deleted, running.next as running_next,
      case when coalesce(place, 1) = 1 then running.held end as running_held,
      case when coalesce(place, 1) = 1 then running.triggers end as running_triggers,
      coalesce((select name from sources where sources.id = read.source_id), '') as source_name, read.*
    from running left join read on before < ${bytes}
    order by place`
  const [first] = rows
  if (first === undefined) return null
  const {
    running_deleted: deleted,
    running_held,
    running_next,
    running_status: status,
    running_team: team_id,
    running_triggers
  } = first
  const next = running_next?.getTime() ?? null
  const held = new Map(Object.entries(running_held ?? {}))
  const triggers = completeTriggers(running_triggers ?? null)
  return { running: { team_id, status, deleted, triggers }, runs: rows.filter((row) => row.id !== null), next, held }
})

export interface StoredPart {
  readonly run_id: string
  readonly part: number
  /** JSON. */
  readonly steps: string
  readonly outputs: string | null
}

/** The journal entries of these runs; for some only those `after` a given one. */
export const partsOf = Effect.fnUntraced(function* (
  runIds: ReadonlyArray<string>,
  after: ReadonlyMap<string, number> = new Map()
): Effect.fn.Return<ReadonlyArray<StoredPart>, SqlError.SqlError, HotSql> {
  if (runIds.length === 0) return []
  const sql = yield* HotSql
  const [first] = Columns.bounds(runIds)
  // A journal entry is in the partition of the day on which it was written, which is never before its run's.
  return yield* sql<StoredPart>`
    select s.run_id, s.part, s.steps, s.outputs
    from unnest(${Columns.text(runIds)}, ${Columns.int4(runIds.map((id) => after.get(id) ?? 0))}) as a (run_id, part)
      cross join lateral (
        select run_id, part, steps, outputs from workflow_steps w
        where w.run_id = a.run_id and w.part > a.part and w.id >= ${idBound(prefixes.workflowPart, idTime(first) ?? 0)}
        order by w.run_id, w.part
      ) s
    order by s.run_id, s.part`
})

/** Null: there is none. */
export const readRunning = Effect.fnUntraced(function* (
  workflowId: string
): Effect.fn.Return<RunningWorkflow | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<RunningWorkflow>`
    select team_id, status, deleted_at is not null as deleted from workflows where id = ${workflowId}`
  return row ?? null
})

interface VersionDefinition {
  readonly steps: ReadonlyArray<Step>
  readonly edges: ReadonlyArray<Edge>
  readonly run_label: string | null
}

/** The definition of a version, with the template of its runs' labels; null: it is gone. */
export const readVersion = Effect.fnUntraced(function* (
  workflowId: string,
  version: number
): Effect.fn.Return<(VersionDefinition & { readonly name: string }) | null, SqlError.SqlError, HotSql> {
  const sql = yield* HotSql
  const [row] = yield* sql<VersionDefinition & { readonly name: string }>`
    select v.name, v.run_label, d.steps, d.edges from workflow_versions v
      join workflow_versions d on d.workflow_id = v.workflow_id and d.version = v.defined_in
    where v.workflow_id = ${workflowId} and v.version = ${version}`
  return row ?? null
})
