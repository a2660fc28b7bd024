import type { PgTypes } from "@effect/sql-pg"
import { waitsForKey } from "../delivery/OrderingKeys.ts"
import * as Columns from "./Columns.ts"
import { writeCounts } from "./CountStatement.ts"
import { writeFeed } from "./FeedStatement.ts"
import type { Present } from "./Groups.ts"
import type { Basis, RoutingResults } from "./RoutingRecord.ts"
import { type Group, groups, isWritten, writes } from "./RoutingRows.ts"
import { insertInto, texts } from "./Rows.ts"

/**
 * The earliest position of each ordering key whose routing job stays. Few jobs are read, because jobs are taken from the front.
 * It also fences an outdated owner: a job that another owner is deciding still exists, or it is gone and its event is stored.
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

/** Whether no earlier job with the ordering key of the routing job `p` stays. */
const isFree = `and not exists (
        select from held where held.connection_id = p.connection_id and held.ordering_key = p.ordering_key and held.place < p.place
      )`

const madeEvents = "taken where kind = 'event'"

/** Inserts the events of routing jobs. */
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

/** Inserts the events' queue rows. An event with an ordering key waits for the one before it, other events for their time. */
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
            due_at: `case when ordering_key is null then due_at else ${waitsForKey} end`,
            ordering_key: "ordering_key",
            place: "case when ordering_key is not null then line_place end",
            ready_at: "case when ordering_key is not null then due_at end"
          }
        : "due_at"
    ],
    madeEvents
  )

/**
 * The commit of a request counts each routing job as an event, because most jobs become one: so the row with the body need not
 * be written again. The counts are corrected for jobs with another result, jobs of a tunnel, and jobs that the previous version
 * has not counted.
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

/**
 * The groups of a batch, whether counts of its requests are corrected, and whether some of its routing jobs have an ordering
 * position.
 */
interface Shape {
  readonly present: Present<Group>
  readonly corrects: boolean
  readonly inOrder: boolean
}

/**
 * One statement, so one transaction. Only the routing jobs that it deletes get a result, so a job that another owner has
 * decided meanwhile is decided once. Jobs with outdated settings stay and are returned. A job also stays while an earlier one
 * with its ordering key stays.
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

/** How the answer identifies a record: by the index of its first routing job, and by its basis (0: none). */
interface Placed {
  readonly first: number
  readonly basis: number
}

/**
 * The commit of a batch, and a function that reads its answer: for each record the ids that it has created; null: its settings
 * were outdated.
 */
export const routingCommit = (
  items: ReadonlyArray<RoutingResults>
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
  let last: { readonly basis: Basis | null; readonly ord: number } = { basis: null, ord: 0 }
  const placeOf = (basis: Basis | null): number => {
    // Most records of a batch are of one connection.
    if (basis !== last.basis) last = { basis, ord: ordOf(basis) }
    return last.ord
  }
  const ordOf = (basis: Basis | null): number => {
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

  /** A routing job is in a batch only once: a second decision would find it deleted. */
  const seen = new Set<string>()
  let place = 0
  let corrects = false
  const tunnels = new Set<string>()
  const placed = items.map((record): Placed => {
    const { connectionId, destinationId, isTunnel } = record
    if (isTunnel) tunnels.add(destinationId)
    const first = place
    const basis = placeOf(record.basis)
    for (const job of record.decided) {
      const { counted, execution, fate, opens, requestId, transformed } = job
      const at = place++
      const name = requestId + connectionId
      if (seen.has(name)) continue
      seen.add(name)
      rows.routes.push({ at, basis, record, job })
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
      ? [...parameters, ...Columns.bounds(rows.routes.map(({ job }) => job.requestId)), Columns.text([...tunnels])]
      : parameters,
    outcomes: (stale, taken) => {
      const isTaken = new Set(taken)
      return items.map(({ decided }, index) => {
        const { basis, first } = placed[index]!
        if (stale.includes(basis)) return null
        const made = new Set<string>()
        for (let i = 0; i < decided.length; i++) {
          const { fate } = decided[i]!
          if (fate.kind !== "dropped" && isTaken.has(first + i))
            made.add(fate.kind === "event" ? fate.eventId : fate.ignoredId)
        }
        return made
      })
    }
  }
}
