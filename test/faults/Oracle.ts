import { idBound, prefixes } from "../../packages/model/src/Ids.ts"
import type { Findings } from "./Findings.ts"
import type { Sent } from "./Load.ts"
import type { Postgres } from "./Postgres.ts"
import type { Connection, Route } from "./Routes.ts"
import type { Arrival } from "./Target.ts"

/** The rows of a round in the database, after all its work has ended. */
export interface Records {
  readonly requests: ReadonlyMap<string, StoredRequest>
  readonly events: ReadonlyMap<string, StoredEvent>
  readonly attempts: ReadonlyMap<string, ReadonlyArray<StoredAttempt>>
  readonly ignored: ReadonlyArray<StoredIgnored>
  /** The ids of events for which an execution of a transformation is recorded. */
  readonly transformed: ReadonlySet<string>
}

interface StoredIgnored {
  readonly requestId: string
  readonly connectionId: string
  readonly cause: string
}

interface StoredRequest {
  readonly sourceId: string
  readonly status: string
  readonly n: number
  readonly kind: string
  readonly group: string
  readonly line: number
}

interface StoredEvent {
  readonly id: string
  readonly requestId: string
  readonly connectionId: string
  readonly state: string
  readonly attempts: number
  readonly createdAt: number
  /** The event of which this one is a retry. A retry is an additional event of its request, and is not delayed. */
  readonly retryOf: string | null
}

interface StoredAttempt {
  readonly n: number
  readonly successful: boolean
  readonly responseStatus: number | null
  readonly deliveredAt: number
  readonly finishedAt: number
}

const ms = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`

/** Reads all rows of requests that were received after `since` (Unix ms). */
export const readRecords = async (postgres: Postgres, since: number): Promise<Records> => {
  const from = (prefix: (typeof prefixes)[keyof typeof prefixes]): [string] => [idBound(prefix, since)]
  const requests = await postgres.query(
    "select id, source_id, status, convert_from(body, 'UTF8') as body from requests where id >= $1",
    from(prefixes.request)
  )
  const events = await postgres.query(
    `select id, request_id, connection_id, state, attempts, ${ms("created_at")} as created_at, retry_parent_event_id
     from events where id >= $1`,
    from(prefixes.event)
  )
  const attempts = await postgres.query(
    `select event_id, attempt_number, status, response_status, ${ms("delivered_at")} as delivered_at,
       ${ms("created_at")} as finished_at
     from attempts where event_id >= $1 order by event_id, attempt_number`,
    from(prefixes.event)
  )
  const ignored = await postgres.query(
    "select request_id, connection_id, cause from ignored_events where id >= $1",
    from(prefixes.ignoredEvent)
  )
  const executions = await postgres.query(
    "select event_id from executions where id >= $1 and event_id is not null and not failed",
    from(prefixes.execution)
  )
  const byEvent = new Map<string, Array<StoredAttempt>>()
  for (const row of attempts) {
    const eventId = String(row["event_id"])
    const list = byEvent.get(eventId) ?? []
    byEvent.set(eventId, list)
    list.push({
      n: Number(row["attempt_number"]),
      successful: row["status"] === "SUCCESSFUL",
      responseStatus: row["response_status"] === null ? null : Number(row["response_status"]),
      deliveredAt: Number(row["delivered_at"]),
      finishedAt: Number(row["finished_at"])
    })
  }
  return {
    requests: new Map(
      requests.map((row) => {
        const { group, kind, line, n } = JSON.parse(String(row["body"])) as Omit<StoredRequest, "sourceId" | "status">
        return [
          String(row["id"]),
          { sourceId: String(row["source_id"]), status: String(row["status"]), n, kind, group, line }
        ]
      })
    ),
    events: new Map(
      events.map((row) => [
        String(row["id"]),
        {
          id: String(row["id"]),
          requestId: String(row["request_id"]),
          connectionId: String(row["connection_id"]),
          state: String(row["state"]),
          attempts: Number(row["attempts"]),
          createdAt: Number(row["created_at"]),
          retryOf: typeof row["retry_parent_event_id"] === "string" ? row["retry_parent_event_id"] : null
        }
      ])
    ),
    attempts: byEvent,
    ignored: ignored.map((row) => ({
      requestId: String(row["request_id"]),
      connectionId: String(row["connection_id"]),
      cause: String(row["cause"])
    })),
    transformed: new Set(executions.map((row) => String(row["event_id"])))
  }
}

/** Whether all work has ended: no delivery is due or planned, and no routing job is left. */
export const isSettled = async (postgres: Postgres): Promise<boolean> => {
  const [row] = await postgres.query(
    "select (exists (select from deliveries) or exists (select from pending_routes)) as waiting"
  )
  return row?.["waiting"] === false
}

/** What still waits, for a person to read. */
export const describeWaiting = async (postgres: Postgres): Promise<string> => {
  const rows = await postgres.query(
    `select d.shard::int4 as shard, c.name, count(*)::int4 as count, min(e.attempts)::int4 as attempts,
       min(d.due_at)::text as due_at, now()::text as now
     from deliveries d left join connections c on c.id = d.connection_id left join events e on e.id = d.event_id
     group by 1, 2 order by 3 desc limit 4`
  )
  return JSON.stringify(rows)
}

/** Every acknowledged request is stored as it was sent. */
export const checkSenders = (findings: Findings, sent: ReadonlyArray<Sent>, records: Records): void => {
  for (const one of sent) {
    if (one.requestId !== null) {
      const stored = records.requests.get(one.requestId)
      if (stored?.n !== one.n || stored.status !== "accepted" || stored.sourceId !== one.sourceId) {
        findings.broke("an acknowledged request is stored", `request ${one.n}: ${one.requestId} ${show(stored)}`)
      }
    } else if (one.status !== null && (one.status !== 503 || one.retryAfter === null)) {
      findings.broke(
        "senders get 2xx, or 503 with Retry-After",
        `request ${one.n}: ${one.status}, Retry-After ${one.retryAfter}, ${one.failure}`
      )
    }
  }
}

/** Checks that every stored request led to exactly the events and ignored events that the rules of its source's connections require. */
export const checkRouting = (findings: Findings, routes: ReadonlyArray<Route>, records: Records): void => {
  const made = new Map<string, number>()
  const count = (kind: string, requestId: string, connectionId: string): void => {
    const name = `${kind} ${requestId} ${connectionId}`
    made.set(name, (made.get(name) ?? 0) + 1)
  }
  const routed = [...records.events.values()].filter(({ retryOf }) => retryOf === null)
  for (const event of routed) count("event", event.requestId, event.connectionId)
  for (const { connectionId, requestId } of records.ignored) count("ignored", requestId, connectionId)
  const bySource = new Map(routes.map((route) => [route.sourceId, route.connections]))
  let expected = 0
  const groups = new Map<string, { readonly connection: Connection; deliverable: number; events: number }>()
  for (const [requestId, request] of records.requests) {
    for (const connection of bySource.get(request.sourceId) ?? []) {
      const passes = connection.onlyKind === null || connection.onlyKind === request.kind
      expected++
      const events = made.get(`event ${requestId} ${connection.id}`) ?? 0
      const ignored = made.get(`ignored ${requestId} ${connection.id}`) ?? 0
      if (connection.once) {
        const name = `${connection.id} ${request.group}`
        const group = groups.get(name) ?? { connection, deliverable: 0, events: 0 }
        groups.set(name, group)
        group.events += events
        if (passes) group.deliverable++
      }
      // The order of processing decides which request of a group becomes the event.
      const fits = connection.once ? events + ignored === 1 && (passes || events === 0) : events === (passes ? 1 : 0)
      if (!fits || events + ignored !== 1) {
        findings.broke(
          "one request, one event per connection",
          `${requestId} on ${connection.key}: ${events} events, ${ignored} ignored`
        )
      }
    }
  }
  for (const [name, { connection, deliverable, events }] of groups) {
    if (events !== (deliverable > 0 ? 1 : 0)) {
      findings.broke("one event of a group", `${name} (${connection.key}): ${events} of ${deliverable} that would do`)
    }
  }
  for (const { cause, connectionId, requestId } of records.ignored) {
    if (cause !== "FILTERED" && cause !== "DEDUPLICATED") {
      findings.broke("nothing is ignored without its rule", `${requestId} on ${connectionId}: ${cause}`)
    }
  }
  if (expected !== routed.length + records.ignored.length) {
    findings.broke(
      "one request, one event per connection",
      `${routed.length} events and ${records.ignored.length} ignored for ${expected} routes`
    )
  }
}

/** The clocks of the rows are the gateway's own, in whole milliseconds. */
const roundingMs = 2

/** Checks that every event has ended as its rules say, with consecutive attempt numbers, and in time if the clocks of all processes agree. */
export const checkEvents = (
  findings: Findings,
  routes: ReadonlyArray<Route>,
  records: Records,
  { clocksAgree }: { readonly clocksAgree: boolean }
): void => {
  const connections = new Map(routes.flatMap((route) => route.connections).map((one) => [one.id, one]))
  for (const event of records.events.values()) {
    const connection = connections.get(event.connectionId)
    if (connection === undefined) continue
    const attempts = records.attempts.get(event.id) ?? []
    const who = `${event.id} (${connection.key})`
    if (attempts.length !== event.attempts || attempts.some((attempt, index) => attempt.n !== index + 1)) {
      findings.broke(
        "attempts are recorded once, without gaps",
        `${who}: says ${event.attempts}, has ${attempts.map(({ n }) => n).join(",")}`
      )
      continue
    }
    const most = 1 + (connection.retry?.count ?? 0)
    const succeeded = attempts.findIndex(({ successful }) => successful)
    const consistent =
      event.state === "SUCCESSFUL"
        ? succeeded === attempts.length - 1 && attempts.length > 0
        : event.state === "FAILED" && succeeded === -1 && attempts.length === most
    if (!consistent) {
      findings.broke(
        "what is accepted comes to an end",
        `${who}: ${event.state} after ${attempts.length} of ${most} attempts, success at ${succeeded + 1}`
      )
    }
    if (clocksAgree) checkSchedule(findings, connection, event, attempts)
  }
}

const checkSchedule = (
  findings: Findings,
  connection: Connection,
  event: StoredEvent,
  attempts: ReadonlyArray<StoredAttempt>
): void => {
  for (const [index, attempt] of attempts.entries()) {
    const before = attempts[index - 1]
    const earliest =
      before === undefined
        ? event.createdAt + (event.retryOf === null ? connection.delayMs : 0)
        : before.finishedAt + (connection.retry?.intervalMs ?? 0)
    if (attempt.deliveredAt < earliest - roundingMs) {
      findings.broke(
        "retries and delays keep to their rule",
        `${event.id} (${connection.key}): attempt ${attempt.n} ${Math.round(earliest - attempt.deliveredAt)} ms too early`
      )
    }
  }
}

/** The first event of a chain of retries. It has the payload. */
const originOf = (event: StoredEvent, { events }: Records): string => {
  let origin = event
  for (let of = origin.retryOf; of !== null; of = origin.retryOf) {
    const parent = events.get(of)
    if (parent === undefined) return of
    origin = parent
  }
  return origin.id
}

/** Checks that the target has received exactly what the gateway has recorded. */
export const checkDeliveries = (
  findings: Findings,
  routes: ReadonlyArray<Route>,
  records: Records,
  arrivals: ReadonlyArray<Arrival>
): void => {
  const connections = new Map(routes.flatMap((route) => route.connections).map((one) => [one.id, one]))
  const answered = new Set<string>()
  for (const arrival of arrivals) {
    if (arrival.answered === 200) answered.add(`${arrival.eventId}/${arrival.attempt}`)
    const event = records.events.get(arrival.eventId)
    const who = `${arrival.eventId} attempt ${arrival.attempt} at ${arrival.key}`
    if (event === undefined) {
      findings.broke("what was delivered is recorded", `${who}: there is no such event`)
      continue
    }
    if (arrival.attempt > event.attempts) {
      findings.broke("what was delivered is recorded", `${who}: ${event.attempts} attempts are recorded`)
    }
    const request = records.requests.get(event.requestId)
    const connection = connections.get(event.connectionId)
    const key = connection?.key
    const shaped = connection?.shaped === true ? (request?.n ?? 0) * 2 : null
    if (connection?.shaped === true && !records.transformed.has(originOf(event, records))) {
      findings.broke("what was transformed has its execution", who)
    }
    if (
      arrival.requestId !== event.requestId ||
      arrival.n !== request?.n ||
      arrival.shaped !== shaped ||
      arrival.key !== key
    ) {
      findings.broke(
        "what is delivered is what was sent",
        `${who}: body ${arrival.n} shaped ${arrival.shaped}, stored ${request?.n}, for ${key}`
      )
    }
  }
  for (const event of records.events.values()) {
    if (event.state === "SUCCESSFUL" && !answered.has(`${event.id}/${event.attempts}`)) {
      findings.broke("a recorded success was received", `${event.id} attempt ${event.attempts}`)
    }
  }
}

/**
 * The arrivals, without those whose attempt had already ended. In such a case the gateway got no answer, recorded this and went on, and a busy target
 * read the request from its socket later. No sender can know that. The recorded times must come from this machine's clock.
 */
export const readInTime = (arrivals: ReadonlyArray<Arrival>, records: Records): ReadonlyArray<Arrival> =>
  arrivals.filter(({ at, attempt, eventId }) => {
    const recorded = records.attempts.get(eventId)?.find(({ n }) => n === attempt)
    return recorded === undefined || recorded.responseStatus !== null || recorded.finishedAt >= at
  })

/** A target hears of the end of one exchange a little later than the gateway, which begins the next. */
const sameMomentMs = 5

/** An event with an ordering key, as its target has received it. */
interface Walked {
  readonly eventId: string
  readonly sentAt: number
  readonly answeredAt: number
  /** When its first attempt began, and when it was over, so that the next event of the key could begin. */
  readonly begunAt: number
  readonly overAt: number
}

/**
 * Checks that events of one key are delivered one at a time and in order: if a request was answered before another was sent, the event of the first
 * must be over before the event of the second begins. Copies after a crash are not counted, but no later event may begin before them. Returns the
 * number of checked events.
 */
export const checkOrder = (
  findings: Findings,
  routes: ReadonlyArray<Route>,
  records: Records,
  arrivals: ReadonlyArray<Arrival>,
  sent: ReadonlyArray<Sent>
): number => {
  let count = 0
  const sentOf = new Map(sent.flatMap((one) => (one.requestId === null ? [] : [[one.requestId, one] as const])))
  const byEvent = new Map<string, Array<Arrival>>()
  for (const arrival of arrivals) byEvent.set(arrival.eventId, [...(byEvent.get(arrival.eventId) ?? []), arrival])
  for (const { id, key, order } of routes.flatMap((route) => route.connections)) {
    if (order === null) continue
    const lines = new Map<number, Array<Walked>>()
    for (const event of records.events.values()) {
      const request = records.requests.get(event.requestId)
      const seen = byEvent.get(event.id)
      if (event.connectionId !== id || request === undefined || seen === undefined) continue
      const outcome = sentOf.get(event.requestId)
      const last = order === "block" ? Math.max(...seen.map(({ attempt }) => attempt)) : 1
      const line = lines.get(request.line) ?? []
      lines.set(request.line, line)
      line.push({
        eventId: event.id,
        // A request without an answer may be at any place in the order.
        sentAt: outcome?.sentAt ?? Number.NEGATIVE_INFINITY,
        answeredAt: outcome?.answeredAt ?? Number.POSITIVE_INFINITY,
        begunAt: Math.min(...seen.map(({ at }) => at)),
        overAt: seen.find(({ attempt }) => attempt === last)?.endedAt ?? 0
      })
    }
    for (const [name, line] of lines) {
      count += line.length
      const answered = line.toSorted((a, b) => a.answeredAt - b.answeredAt)
      let before: Walked | undefined
      let next = 0
      for (const one of line.toSorted((a, b) => a.sentAt - b.sentAt)) {
        for (; next < answered.length && answered[next]!.answeredAt <= one.sentAt; next++) {
          if (before === undefined || answered[next]!.overAt > before.overAt) before = answered[next]
        }
        if (before !== undefined && one.begunAt < before.overAt - sameMomentMs) {
          findings.broke(
            "events of one key arrive in ingest order",
            `${key} line ${name}: ${one.eventId} at ${time(one.begunAt)}, before ${before.eventId} was over at ${time(before.overAt)}`
          )
        }
      }
      checkOneAtATime(
        findings,
        `${key} line ${name}`,
        line.flatMap(({ eventId }) => byEvent.get(eventId)!)
      )
    }
  }
  return count
}

const checkOneAtATime = (findings: Findings, who: string, arrivals: ReadonlyArray<Arrival>): void => {
  let last: Arrival | undefined
  for (const arrival of arrivals.toSorted((a, b) => a.at - b.at)) {
    if (last !== undefined && last.eventId !== arrival.eventId && arrival.at < last.endedAt - sameMomentMs) {
      findings.broke(
        "events of one key arrive one at a time",
        `${who}: ${arrival.eventId} at ${time(arrival.at)}, beside ${last.eventId} until ${time(last.endedAt)}`
      )
    }
    if (last === undefined || arrival.endedAt > last.endedAt) last = arrival
  }
}

/** Starts of a paced destination are counted by the gateway's clock, to the millisecond. */
const paceWindowMs = 1_000 - 2 * roundingMs

/** Checks that no second has more recorded starts than a destination's rate limit allows. */
export const checkPace = (findings: Findings, routes: ReadonlyArray<Route>, records: Records): void => {
  for (const connection of routes.flatMap((route) => route.connections)) {
    const limit = connection.ratePerSecond
    if (limit === null) continue
    const starts: Array<number> = []
    for (const event of records.events.values()) {
      if (event.connectionId !== connection.id) continue
      for (const attempt of records.attempts.get(event.id) ?? []) starts.push(attempt.deliveredAt)
    }
    starts.sort((a, b) => a - b)
    for (let last = limit; last < starts.length; last++) {
      const span = starts[last]! - starts[last - limit]!
      if (span < paceWindowMs) {
        findings.broke(
          "a rate is kept",
          `${connection.key}: ${limit + 1} starts within ${Math.round(span)} ms, until ${time(starts[last]!)}`
        )
      }
    }
  }
}

/** What an event is counted under. */
const eventKeys = "(connection_id), (source_id), (destination_id), (source_id || '>' || destination_id), (team_id)"

/** Checks that every count equals the number of rows that it counts, over the whole life of the database. `run_ms` is a sum, and counts no rows. */
export const checkCounts = async (findings: Findings, postgres: Postgres): Promise<void> => {
  const rows = await postgres.query(`
    with stored as (
      select key_id, measure, sum(count)::int8 as n from counted where measure <> 'run_ms' group by 1, 2
    ), actual as (
      select k.key_id, status as measure, count(*) as n
        from requests cross join lateral (values (source_id), (team_id)) as k (key_id) group by 1, 2
      union all select k.key_id, 'created', count(*) from events
        cross join lateral (values ${eventKeys}) as k (key_id) group by 1
      union all select k.key_id, lower(state), count(*) from events
        cross join lateral (values ${eventKeys}) as k (key_id)
        where state <> 'PENDING' group by 1, 2
      union all select k.key_id, 'ignored', count(*) from ignored_events
        cross join lateral (values (connection_id), (source_id), (team_id)) as k (key_id) group by 1
      union all select k.key_id, case when failed then 'execution_failed' else 'execution_successful' end, count(*)
        from executions cross join lateral (values (transformation_id), (team_id)) as k (key_id) group by 1, 2
      union all select k.key_id, 'attempt_' || lower(status), count(*)
        from attempts cross join lateral (values (destination_id), (team_id)) as k (key_id) group by 1, 2
      union all select k.key_id, 'run', count(*) from workflow_runs
        cross join lateral (values (workflow_id), (team_id)) as k (key_id) where parts > 0 group by 1
      union all select k.key_id, 'run_' || status, count(*) from workflow_runs
        cross join lateral (values (workflow_id), (team_id)) as k (key_id) where finished_at is not null group by 1, 2
    )
    select key_id, measure, coalesce(stored.n, 0)::int4 as counted, coalesce(actual.n, 0)::int4 as actual
    from stored full join actual using (key_id, measure)
    where coalesce(stored.n, 0) <> coalesce(actual.n, 0)`)
  for (const row of rows) {
    findings.broke(
      "counts are exact",
      `${String(row["measure"])} of ${String(row["key_id"])}: counted ${String(row["counted"])}, there are ${String(row["actual"])}`
    )
  }
}

/** A second copy of an attempt, or a third. */
export interface Duplicate {
  readonly first: Arrival
  readonly copy: Arrival
}

/** Attempts that arrived more than once, in the order of the copies. */
export const duplicatesOf = (arrivals: ReadonlyArray<Arrival>): ReadonlyArray<Duplicate> => {
  const firsts = new Map<string, Arrival>()
  const duplicates: Array<Duplicate> = []
  for (const arrival of arrivals) {
    const name = `${arrival.eventId}/${arrival.attempt}`
    const first = firsts.get(name)
    if (first === undefined) firsts.set(name, arrival)
    else duplicates.push({ first, copy: arrival })
  }
  return duplicates
}

/** A clock time with milliseconds. */
export const time = (at: number): string => new Date(at).toISOString().slice(11, 23)

const show = (value: unknown): string => JSON.stringify(value) ?? "is not stored"
