import { Groups } from "./Groups.ts"
import type { Basis, DecidedJob, ExecutionRecord, Fate, RoutingResults, TransformedData } from "./RoutingRecord.ts"
import { Rows } from "./Rows.ts"

/** The rows of a batch of routing results, and what is written from them. */

/** A routing job of a batch, with its result. */
interface Deciding {
  /** Its index in the batch. */
  readonly at: number
  /** The number of its basis among those of the batch, from 1; 0: it has none. */
  readonly basis: number
  readonly record: RoutingResults
  readonly job: DecidedJob
}

/** A row of the routing job with this index. */
interface Writing<A> {
  readonly at: number
  readonly of: A
}

const idOf = (fate: Fate): string | null =>
  fate.kind === "event" ? fate.eventId : fate.kind === "ignored" ? fate.ignoredId : null

/**
 * The rows of a batch by group. Those of the last four groups are inserted into a table, together with the row of their routing
 * job in `taken`.
 */
const declared = {
  bases: new Rows<{ readonly ord: number; readonly basis: Basis }>("b", [
    ["ord", "int4", ({ ord }) => ord],
    ["source_id", "text", ({ basis }) => basis.sourceId],
    ["version", "int8", ({ basis }) => BigInt(basis.version)],
    ["transformation_id", "text", ({ basis }) => basis.transformation?.id ?? null],
    ["mark", "text", ({ basis }) => basis.transformation?.mark ?? null]
  ]),
  routes: new Rows<Deciding>("r", [
    ["place", "int4", ({ at }) => at],
    ["basis", "int4", ({ basis }) => basis],
    ["connection_id", "text", ({ record }) => record.connectionId],
    ["request_id", "text", ({ job }) => job.requestId],
    ["kind", "text", ({ job }) => job.fate.kind],
    ["id", "text", ({ job }) => idOf(job.fate)],
    ["destination_id", "text", ({ record }) => record.destinationId],
    ["shard", "int2", ({ record }) => record.shard],
    ["due_at", "timestamptz", ({ job: { fate } }) => (fate.kind === "event" ? fate.dueAt : null)],
    ["data_id", "text", ({ job }) => job.transformed?.id ?? null],
    ["at", "timestamptz", ({ record }) => record.now]
  ]),
  ignored: new Rows<Writing<Extract<Fate, { kind: "ignored" }>>>("i", [
    ["place", "int4", ({ at }) => at, []],
    { id: "taken.id" },
    "team_id",
    "request_id",
    "connection_id",
    "source_id",
    ["cause", "text", ({ of }) => of.cause],
    ["meta", "text", ({ of }) => of.meta, []],
    { meta: "meta::jsonb", created_at: "at" }
  ]),
  executions: new Rows<Writing<ExecutionRecord>>("r", [
    ["place", "int4", ({ at }) => at, []],
    ["id", "text", ({ of }) => of.id],
    "team_id",
    ["transformation_id", "text", ({ of }) => of.transformationId],
    "request_id",
    "connection_id",
    "source_id",
    "event_id",
    { event_data_id: "data_id" },
    ["code_hash", "text", ({ of }) => of.codeHash],
    ["error_code", "text", ({ of }) => of.errorCode],
    ["error_message", "text", ({ of }) => of.errorMessage],
    ["log_level", "text", ({ of }) => of.logLevel],
    ["failed", "bool", ({ of }) => of.failed],
    ["logs", "text", ({ of }) => of.logs],
    ["duration", "int4", ({ of }) => of.duration],
    ["memory_bytes", "int8", ({ of }) => BigInt(of.memoryBytes)],
    { created_at: "at" }
  ]),
  payloads: new Rows<Writing<TransformedData>>("p", [
    ["place", "int4", ({ at }) => at, []],
    ["id", "text", ({ of }) => of.id],
    "team_id",
    "request_id",
    "connection_id",
    ["method", "text", ({ of }) => of.method],
    ["path", "text", ({ of }) => of.path],
    ["query", "text", ({ of }) => of.query],
    ["headers", "text", ({ of }) => of.headers],
    ["body", "bytea", ({ of }) => of.body],
    { same_body: "p.body is null" },
    ["body_size", "int4", ({ of }) => of.bodySize],
    { created_at: "at" }
  ]),
  windows: new Rows<Writing<NonNullable<DecidedJob["opens"]>>>("w", [
    ["place", "int4", ({ at }) => at],
    ["key", "text", ({ of }) => of.key],
    ["expires_at", "timestamptz", ({ of }) => of.expiresAt]
  ])
}

export const groups = new Groups(declared)

export type Group = keyof typeof declared

/** The inserts for the routing jobs in `taken`, from the rows of a group. Each row has the index of its job. */
export const writes: {
  readonly [group in "ignored" | "executions" | "payloads" | "windows"]: (rows: string) => string
} = {
  ignored: (rows) => `passed as (
    ${declared.ignored.insertInto("ignored_events", `taken join ${rows} on i.place = taken.place`)}
  )`,
  executions: (rows) => `x as materialized (
    select taken.team_id, taken.request_id, taken.connection_id, taken.source_id, taken.at, taken.data_id,
      case taken.kind when 'event' then taken.id end as event_id, r.*
    from taken join ${rows} on r.place = taken.place
  ), executed as (
    ${declared.executions.insertInto("executions", "x")}
  )`,
  payloads: (rows) => `transformed as (
    ${declared.payloads.insertInto("event_data", `taken join ${rows} on p.place = taken.place`, "p.")}
  )`,
  // Of windows that one key opens in a batch, one ending within it, the last is kept.
  windows: (rows) => `opened as (
    insert into dedupe_keys (connection_id, team_id, key, request_id, expires_at)
    select distinct on (connection_id, key) connection_id, team_id, key, request_id, w.expires_at
    from taken join ${rows} on w.place = taken.place
    order by connection_id, key, w.expires_at desc
    on conflict (connection_id, key) do update
      set team_id = excluded.team_id, request_id = excluded.request_id, expires_at = excluded.expires_at
      where dedupe_keys.expires_at < excluded.expires_at
  )`
}

export const isWritten = (group: Group): group is keyof typeof writes => Object.hasOwn(writes, group)
