import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { idTime, newId, prefixes } from "@tidegate/model/Ids"
import type { EventFilter } from "../../src/reads/EventPlan.ts"
import type { RequestFilter } from "../../src/reads/RequestReads.ts"
import { minuteOfId, writeCounts } from "../../src/journal/CountStatement.ts"

/*
 * A small history of a team, in memory and in the database, counted as the event path counts: what a count or a series must tell is
 * worked out of the first, row by row.
 */

export interface MadeRequest {
  readonly id: string
  readonly source: string
  readonly status: "accepted" | "rejected"
}

export interface MadeEvent {
  readonly id: string
  readonly request: string
  readonly connection: string
  readonly source: string
  readonly destination: string
  readonly state: "PENDING" | "SUCCESSFUL" | "FAILED" | "CANCELLED"
  /** Of a pending one: what it reads. */
  readonly reads: "QUEUED" | "SCHEDULED" | "HOLD" | "PROCESSING" | "CANCELLED" | null
}

export interface MadeIgnored {
  readonly id: string
  readonly connection: string
  readonly source: string
}

export interface Made {
  readonly team: string
  readonly requests: ReadonlyArray<MadeRequest>
  readonly events: ReadonlyArray<MadeEvent>
  readonly ignored: ReadonlyArray<MadeIgnored>
}

/** Two sources, two destinations; a connection that is open, one that is paused, one that is switched off. */
export const endsOf = (team: string) => {
  const id = (prefix: (typeof prefixes)[keyof typeof prefixes], n: number) =>
    `${prefix}${team.slice(3)}${n}`.padEnd(prefix.length + 26, "0")
  const sources = [id(prefixes.source, 1), id(prefixes.source, 2)] as const
  const destinations = [id(prefixes.destination, 1), id(prefixes.destination, 2)] as const
  return {
    sources,
    destinations,
    connections: [
      { id: id(prefixes.connection, 1), source: sources[0], destination: destinations[0], reads: null },
      { id: id(prefixes.connection, 2), source: sources[0], destination: destinations[1], reads: "HOLD" },
      { id: id(prefixes.connection, 3), source: sources[1], destination: destinations[1], reads: "CANCELLED" }
    ] as const
  }
}

/** One request as it is thought up: when, and what becomes of it on one of the connections. */
export interface Thought {
  readonly at: number
  readonly connection: number
  readonly becomes: "rejected" | "ignored" | "successful" | "failed" | "cancelled" | "queued" | "scheduled" | "started"
}

export const makeTeam = Effect.fnUntraced(function* (team: string) {
  const sql = yield* SqlClient.SqlClient
  const { connections, destinations, sources } = endsOf(team)
  yield* sql`insert into teams (id, name) values (${team}, ${team})`
  for (const id of sources)
    yield* sql`insert into sources (id, team_id, name, type, config, created_at, updated_at)
      values (${id}, ${team}, ${id}, 'WEBHOOK', '{}', now(), now())`
  for (const id of destinations)
    yield* sql`insert into destinations (id, team_id, name, type, config, created_at, updated_at)
      values (${id}, ${team}, ${id}, 'HTTP', '{}', now(), now())`
  for (const { destination, id, reads, source } of connections)
    yield* sql`insert into connections (id, team_id, name, source_id, destination_id, rules, paused_at, disabled_at, created_at,
        updated_at)
      values (${id}, ${team}, ${id}, ${source}, ${destination}, '[]', ${reads === "HOLD" ? new Date() : null},
        ${reads === "CANCELLED" ? new Date() : null}, now(), now())`
})

/** What they make. `far`: a time that nobody has come to. */
export const make = (team: string, thoughts: ReadonlyArray<Thought>): Made => {
  const { connections } = endsOf(team)
  const requests: Array<MadeRequest> = []
  const events: Array<MadeEvent> = []
  const ignored: Array<MadeIgnored> = []
  for (const { at, becomes, connection: n } of thoughts) {
    const { destination, id: connection, reads, source } = connections[n % connections.length]!
    const request = newId(prefixes.request, at)
    requests.push({ id: request, source, status: becomes === "rejected" ? "rejected" : "accepted" })
    if (becomes === "ignored") ignored.push({ id: newId(prefixes.ignoredEvent, at), connection, source })
    if (becomes === "ignored" || becomes === "rejected") continue
    const waits = { queued: "QUEUED", scheduled: "SCHEDULED", started: "PROCESSING" } as const
    const waiting = becomes in waits ? waits[becomes as keyof typeof waits] : null
    const state = waiting === null ? (becomes.toUpperCase() as MadeEvent["state"]) : "PENDING"
    const id = newId(prefixes.event, at)
    events.push({ id, request, connection, source, destination, state, reads: waiting && (reads ?? waiting) })
  }
  return { team, requests, events, ignored }
}

const at = (id: string): string => new Date(idTime(id)!).toISOString()

/** Writes them down, and what is to be counted of them. */
export const store = Effect.fnUntraced(function* ({ events, ignored, requests, team }: Made) {
  const sql = yield* SqlClient.SqlClient
  const json = (rows: ReadonlyArray<{ readonly id: string }>) =>
    JSON.stringify(rows.map((row) => ({ ...row, at: at(row.id) })))
  yield* sql`insert into requests (id, team_id, source_id, status, verified, method, path, query, headers, body_size, external_id,
      events_count, ignored_count, ingested_at, created_at, updated_at)
    select id, ${team}, source, status, false, 'POST', '/', '', '{}', 0, 'ext-' || id, 0, 0, at, at, at
    from json_to_recordset(${json(requests)}::json) as r (id text, source text, status text, at timestamptz)`
  yield* sql`insert into ignored_events (id, team_id, request_id, connection_id, source_id, cause, meta, created_at)
    select id, ${team}, 'req_none', connection, source, 'FILTERED', '[]', at
    from json_to_recordset(${json(ignored)}::json) as i (id text, connection text, source text, at timestamptz)`
  // What slow rules made, and retries, were created later than their ids say.
  const columns = sql.literal(
    "(id text, request text, connection text, source text, destination text, state text, reads text, at timestamptz)"
  )
  yield* sql`insert into events (id, team_id, request_id, connection_id, source_id, destination_id, state, failed, trigger, due_at,
      ingested_at, created_at, updated_at)
    select id, ${team}, request, connection, source, destination, state, state in ('FAILED', 'CANCELLED'), 'INITIAL',
      case when state = 'PENDING' then case reads when 'SCHEDULED' then now() + interval '1 day' else at end end,
      at, at + interval '90 seconds', at
    from json_to_recordset(${json(events)}::json) as e ${columns}`
  yield* sql`insert into deliveries (event_id, team_id, shard, destination_id, connection_id, due_at, started_at)
    select id, ${team}, 1, destination, connection, case reads when 'SCHEDULED' then now() + interval '1 day' else at end,
      case reads when 'PROCESSING' then at end
    from json_to_recordset(${json(events)}::json) as e ${columns} where state = 'PENDING'`
  const minute = minuteOfId("id")
  yield* sql.unsafe(
    writeCounts(`(
      select source_id as key_id, null::text as source_id, null::text as destination_id, status as measure, ${minute} as minute, team_id,
        count(*) as n from requests where team_id = '${team}' group by 1, 4, 5, 6
      union all
      select connection_id, source_id, destination_id, m.measure, ${minute}, team_id, count(*)
      from events cross join lateral (values ('created'), (nullif(lower(state), 'pending'))) as m (measure)
      where team_id = '${team}' and m.measure is not null group by 1, 2, 3, 4, 5, 6
      union all
      select connection_id, source_id, null, 'ignored', ${minute}, team_id, count(*)
      from ignored_events where team_id = '${team}' group by 1, 2, 5, 6
    ) as c`)
  )
})

const within = (ids: ReadonlyArray<string>, id: string): boolean => ids.length === 0 || ids.includes(id)

/** The status that an event of it reads. */
export const statusOf = ({ reads, state }: MadeEvent): string =>
  reads === null ? state : reads === "PROCESSING" ? "QUEUED" : reads

export const eventsThat = (made: Made, filter: EventFilter): ReadonlyArray<MadeEvent> =>
  made.events.filter(
    (event) =>
      within(filter.sources, event.source) &&
      within(filter.connections, event.connection) &&
      within(filter.destinations, event.destination) &&
      within(filter.statuses, statusOf(event)) &&
      (filter.search === undefined || event.id.startsWith(filter.search))
  )

export const requestsThat = (made: Made, filter: RequestFilter): ReadonlyArray<MadeRequest> =>
  made.requests.filter(
    (request) =>
      within(filter.sources, request.source) &&
      (filter.status === undefined || filter.status === request.status) &&
      (filter.search === undefined || `ext-${request.id}`.startsWith(filter.search))
  )

export const ignoredThat = (made: Made, filter: EventFilter): ReadonlyArray<MadeIgnored> =>
  filter.destinations.length > 0 || filter.statuses.length > 0
    ? []
    : made.ignored.filter(
        (event) =>
          within(filter.sources, event.source) &&
          within(filter.connections, event.connection) &&
          (filter.search === undefined || event.id.startsWith(filter.search))
      )

export const countIn = (rows: ReadonlyArray<{ readonly id: string }>, from: number, to: number): number =>
  rows.filter(({ id }) => idTime(id)! >= from && idTime(id)! < to).length
