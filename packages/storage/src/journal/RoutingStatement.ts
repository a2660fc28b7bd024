import type { PgTypes } from "@effect/sql-pg"
import type { StoredHead, Values } from "@tidegate/model/Message"
import { inLine } from "../delivery/OrderingKeys.ts"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { writeFeed } from "./FeedStatement.ts"
import { Groups, type Present } from "./Groups.ts"
import { insertInto, Rows, texts } from "./Rows.ts"

/** What a transformation made of a request; `body` null when it left the body alone. */
export interface TransformedData extends StoredHead {
  readonly id: string
  /** The headers, as they are handed on. */
  readonly values: Values
  readonly body: Uint8Array | null
  readonly bodySize: number
}

/** One run of a transformation, as it is recorded. */
export interface ExecutionRecord {
  readonly id: string
  readonly transformationId: string
  readonly codeHash: string
  readonly errorCode: string | null
  readonly errorMessage: string | null
  readonly logLevel: string
  readonly failed: boolean
  /** JSON array of {type, message}. */
  readonly logs: string
  /** Microseconds. */
  readonly duration: number
  readonly memoryBytes: number
}

/** What becomes of one routing job. `eventId` and `ignoredId` are derived, so a repeated step finds them taken. */
export type Fate =
  | { readonly kind: "event"; readonly eventId: string; readonly dueAt: number }
  | { readonly kind: "ignored"; readonly ignoredId: string; readonly cause: string; readonly meta: string }
  /** The connection takes no requests any more. */
  | { readonly kind: "dropped" }

export interface Settled {
  readonly requestId: string
  /** Whether its request counts it as an event already. */
  readonly counted: boolean
  readonly fate: Fate
  /** Null when no transformation ran. */
  readonly execution: ExecutionRecord | null
  /** Null when nothing was transformed. */
  readonly transformed: TransformedData | null
  /** The deduplication window that this request opens. */
  readonly opens: { readonly key: string; readonly expiresAt: number } | null
}

/**
 * The settings that routing jobs were decided by, when these were read before the jobs. The results are stored only if the settings still hold. They
 * are the version of the source, which counts all changes of its connections and their destinations, and the state of the transformation.
 */
export interface Basis {
  readonly sourceId: string
  readonly version: number
  /** Null: they name none. */
  readonly transformation: { readonly id: string; readonly mark: string } | null
}

/** The results of routing jobs of one connection, which are stored together or not at all. Times are Unix milliseconds. */
export interface SettlementRecord {
  readonly connectionId: string
  readonly destinationId: string
  /** Whether its deliveries go through a tunnel: their requests count them. */
  readonly isTunnel: boolean
  /** The shard of the destination's actor. */
  readonly shard: number
  readonly now: number
  /** Null: the settings were read after the routing jobs. */
  readonly basis: Basis | null
  /** Whether some of these routing jobs have a place in a line: see `OrderingKeys.ts`. */
  readonly inOrder: boolean
  readonly settled: ReadonlyArray<Settled>
}

/** A routing job of a batch, with its result. */
interface Deciding {
  /** Its place in the batch. */
  readonly at: number
  /** Where its basis stands among those of the batch, from 1; 0: it has none. */
  readonly basis: number
  readonly record: SettlementRecord
  readonly settled: Settled
}

/** What is written of the routing job at this place. */
interface Writing<A> {
  readonly at: number
  readonly of: A
}

const idOf = (fate: Fate): string | null =>
  fate.kind === "event" ? fate.eventId : fate.kind === "ignored" ? fate.ignoredId : null

/** The rows of a batch, by what they are for. Those of the last four become rows of a table, together with the row of their routing job in `taken`. */
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
    ["request_id", "text", ({ settled }) => settled.requestId],
    ["kind", "text", ({ settled }) => settled.fate.kind],
    ["id", "text", ({ settled }) => idOf(settled.fate)],
    ["destination_id", "text", ({ record }) => record.destinationId],
    ["shard", "int2", ({ record }) => record.shard],
    ["due_at", "timestamptz", ({ settled: { fate } }) => (fate.kind === "event" ? fate.dueAt : null)],
    ["data_id", "text", ({ settled }) => settled.transformed?.id ?? null],
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
  windows: new Rows<Writing<NonNullable<Settled["opens"]>>>("w", [
    ["place", "int4", ({ at }) => at],
    ["key", "text", ({ of }) => of.key],
    ["expires_at", "timestamptz", ({ of }) => of.expiresAt]
  ])
}

const groups = new Groups(declared)

type Group = keyof typeof declared

/** What is written of the routing jobs taken, from the rows of a group. Each row has the place of its job. */
const writes: { readonly [group in "ignored" | "executions" | "payloads" | "windows"]: (rows: string) => string } = {
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

const isWritten = (group: Group): group is keyof typeof writes => Object.hasOwn(writes, group)

/**
 * The earliest place of each line whose routing job stays. Few are looked at, because jobs are read from the front of their line. It also fences an
 * outdated owner: a job that another owner is about to decide is still there, or is gone and its event is stored.
 */
const held = `here as materialized (
  select s.connection_id, max(p.place) as last, array_agg(s.request_id) as ids
  from s cross join lateral (
    select place from pending_routes p where p.connection_id = s.connection_id and p.request_id = s.request_id offset 0
  ) p
  where p.place is not null group by 1
), held as materialized (
  select here.connection_id, q.ordering_key, min(q.place) as place
  from here cross join lateral (
    select ordering_key, place, request_id from pending_routes q
    where q.connection_id = here.connection_id and q.place is not null and q.place < here.last
    order by q.connection_id, q.place limit 1000000
  ) q
  where q.ordering_key is not null and q.request_id <> all(here.ids)
  group by 1, 2
)`

/** Whether no job before the routing job `p` stays in its line. */
const isFree = `and not exists (
        select from held where held.connection_id = p.connection_id and held.ordering_key = p.ordering_key and held.place < p.place
      )`

const madeEvents = "taken where kind = 'event'"

/** The events that routing jobs become. */
const made = (inOrder: boolean): string =>
  insertInto(
    "events",
    [
      "id",
      "team_id",
      "request_id",
      "connection_id",
      "source_id",
      "destination_id",
      { event_data_id: "data_id", state: "'PENDING'", trigger: "'INITIAL'" },
      "due_at",
      { ingested_at: "created_at", created_at: "at", updated_at: "at" },
      ...(inOrder ? ["ordering_key"] : [])
    ],
    madeEvents
  )

/** The events' rows in the delivery queues. An event in a line waits for the one before it, another one for its time. */
const queued = (inOrder: boolean): string =>
  insertInto(
    "deliveries",
    [
      { event_id: "id" },
      "team_id",
      "shard",
      "destination_id",
      "connection_id",
      inOrder
        ? {
            due_at: `case when ordering_key is null then due_at else ${inLine} end`,
            ordering_key: "ordering_key",
            place: "case when ordering_key is not null then line_place end",
            ready_at: "case when ordering_key is not null then due_at end"
          }
        : "due_at"
    ],
    madeEvents
  )

/**
 * A commit of requests counts each routing job as an event of its request, because most become one: so the row with the body need not be written
 * again. The counts are corrected for jobs that became something else, go through a tunnel, or were not counted by the version before.
 */
const correct = (first: string, last: string, tunnels: string): string => `corrected as (
    update requests set events_count = events_count + c.events, ignored_count = ignored_count + c.ignored,
      cli_events_count = cli_events_count + c.cli_events
    from (
      select request_id, sum((kind = 'event')::int4 - counted::int4)::int4 as events, sum((kind = 'ignored')::int4)::int4 as ignored,
        sum((kind = 'event' and destination_id = any(${tunnels}::text[]))::int4)::int4 as cli_events
      from taken group by request_id
    ) as c
    where requests.id = any(array(select request_id from taken)) and requests.id >= ${first} and requests.id <= ${last}
      and requests.id = c.request_id and (c.events <> 0 or c.ignored <> 0 or c.cli_events <> 0)
  )`

/** What a batch has rows of, whether its requests' counts are corrected, and whether some of its routing jobs have a place in a line. */
interface Shape {
  readonly present: Present<Group>
  readonly corrects: boolean
  readonly inOrder: boolean
}

/**
 * One statement, hence one transaction. Only routing jobs that it deletes have a result, so a job that somebody else has decided meanwhile is decided
 * once. Jobs whose basis does not hold any more are left, and answered. A job is left, too, while one before it in its line stays.
 */
const statementFor = texts(({ corrects, inOrder, present }: Shape): string => {
  const { next, rows } = groups.from(present)
  const bases = rows.get("bases")
  const corrected = corrects ? [correct(`$${next}`, `$${next + 1}`, `$${next + 2}`)] : []
  const parts = present.flatMap(([group]) => (isWritten(group) ? [writes[group](rows.get(group)!)] : []))
  const stale =
    bases === undefined
      ? `select '{}'::int4[] as ords`
      : `select coalesce(array_agg(b.ord), '{}'::int4[]) as ords
  from ${bases}
  where (select case when deleted_at is null then sources.version end from sources where sources.id = b.source_id)
      is distinct from b.version
    or (b.transformation_id is not null and b.mark is distinct from (
      select case when deleted_at is null then transformations.xmin::text end from transformations
      where transformations.id = b.transformation_id))`
  return `
with stale as materialized (
  ${stale}
), s as materialized (
  select * from ${rows.get("routes")!}
  ${bases === undefined ? "" : "where basis <> all ((select ords from stale)::int4[])"}
), ${inOrder ? `${held}, ` : ""}gone as (
  delete from pending_routes where ctid = any(array(
    select (select p.ctid from pending_routes p where p.connection_id = s.connection_id and p.request_id = s.request_id
      ${inOrder ? isFree : ""}) from s
  ))
  returning connection_id, request_id, team_id, source_id, created_at, counted${inOrder ? ", ordering_key, place" : ""}
), taken as materialized (
  select s.*, gone.team_id, gone.source_id, gone.created_at, gone.counted
    ${inOrder ? ", gone.ordering_key, gone.place as line_place" : ""}
  from s join gone on gone.request_id = s.request_id and gone.connection_id = s.connection_id
), made as (
  ${made(inOrder)}
), fed as (
  ${writeFeed(madeEvents)}
), queued as (
  ${queued(inOrder)}
), ${[...parts, ...corrected].map((part) => `${part}, `).join("")}counted as (
  select connection_id as key_id, source_id, case kind when 'event' then destination_id end as destination_id,
    case kind when 'event' then 'created' else 'ignored' end as measure, date_trunc('minute', created_at) as minute, team_id,
    count(*) as n
  from taken where kind <> 'dropped' group by 1, 2, 3, 4, 5, 6
  ${
    rows.has("executions")
      ? `union all
  select transformation_id, null, null, case when failed then 'execution_failed' else 'execution_successful' end, date_trunc('minute', at),
    team_id, count(*)
  from x group by 1, 4, 5, 6`
      : ""
  }
), written as (
  ${writeCounts("counted")}
)
select (select ords from stale) as stale, (select coalesce(array_agg(place), '{}'::int4[]) from taken) as taken`
})

/** How the answer names a record: the place of its first routing job, and its basis (0: none). */
interface Placed {
  readonly first: number
  readonly basis: number
}

/** The commit of a batch, and what reads its answer: for each record the ids of what was made; null: its basis did not hold. */
export const settleCommit = (
  items: ReadonlyArray<SettlementRecord>
): {
  readonly statement: string
  readonly parameters: ReadonlyArray<PgTypes.Parameter | string>
  readonly outcomes: (
    stale: ReadonlyArray<number>,
    taken: ReadonlyArray<number>
  ) => ReadonlyArray<ReadonlySet<string> | null>
} => {
  const ords = new Map<string, number>()
  const rows = groups.lists()
  const placeOf = (basis: Basis | null): number => {
    if (basis === null) return 0
    const { sourceId, transformation, version } = basis
    const name = `${sourceId} ${version} ${transformation?.id} ${transformation?.mark}`
    const known = ords.get(name)
    if (known !== undefined) return known
    const ord = ords.size + 1
    ords.set(name, ord)
    rows.bases.push({ ord, basis })
    return ord
  }

  /** A routing job is in a batch once: a second decision about it would find it gone. */
  const seen = new Set<string>()
  let place = 0
  let corrects = false
  const tunnels = new Set<string>()
  const placed = items.map((record): Placed => {
    const { connectionId, destinationId, isTunnel } = record
    if (isTunnel) tunnels.add(destinationId)
    const first = place
    const basis = placeOf(record.basis)
    for (const settled of record.settled) {
      const { counted, execution, fate, opens, requestId, transformed } = settled
      const at = place++
      const name = requestId + connectionId
      if (seen.has(name)) continue
      seen.add(name)
      rows.routes.push({ at, basis, record, settled })
      if (fate.kind !== "event" || !counted || isTunnel) corrects = true
      if (fate.kind === "ignored") rows.ignored.push({ at, of: fate })
      if (opens !== null) rows.windows.push({ at, of: opens })
      if (execution !== null) rows.executions.push({ at, of: execution })
      if (transformed !== null) rows.payloads.push({ at, of: transformed })
    }
    return { first, basis }
  })

  const single = rows.routes.length === 1
  const inOrder = items.some((item) => item.inOrder)
  const { name, parameters, present } = groups.bind(rows, () => single)
  return {
    statement: statementFor(`${name}${inOrder} ${corrects}`, { present, corrects, inOrder }),
    parameters: corrects
      ? [
          ...parameters,
          ...Columns.bounds(rows.routes.map(({ settled }) => settled.requestId)),
          Columns.text([...tunnels])
        ]
      : parameters,
    outcomes: (stale, taken) => {
      const isTaken = new Set(taken)
      return items.map(({ settled }, index) => {
        const { basis, first } = placed[index]!
        if (stale.includes(basis)) return null
        const made = new Set<string>()
        for (let i = 0; i < settled.length; i++) {
          const { fate } = settled[i]!
          if (fate.kind !== "dropped" && isTaken.has(first + i))
            made.add(fate.kind === "event" ? fate.eventId : fate.ignoredId)
        }
        return made
      })
    }
  }
}
