import { createHmac } from "node:crypto"
import type { Rules } from "../support/Contract.ts"
import { sleep, waitUntil } from "../support/Waiting.ts"
import type { Gateways } from "../support/Gateways.ts"
import { Target } from "../support/Target.ts"

/*
 * A configuration change that has returned holds for every request sent after it, on every process.
 *
 * Every subject is a source with a connection to a destination, and one thing about them that changes again and again
 * while both processes receive. A request notes the state that had returned when it was sent and, once it is answered,
 * the last one that had been asked for: it may have been handled by any state in between, and by no other. Requests sent
 * before a change returned may be handled either way.
 */

export type Process = "a" | "b"

/** What a request came to: by its answer and its records. */
type Outcome =
  | "event" // accepted, one event
  | "filtered" // accepted, ignored as FILTERED for its body
  | "failed" // accepted, ignored because its transformation threw
  | "unrouted" // accepted, no connection took it
  | "SOURCE_DISABLED"
  | "SOURCE_METHOD_NOT_ALLOWED"
  | "SOURCE_AUTH_FAILED"

interface Probe {
  readonly method: string
  readonly headers?: Record<string, string>
  readonly body: string
  /** What has to become of it when `state` handles it. */
  readonly expected: (state: number) => Outcome
}

interface Ids {
  readonly source: string
  readonly connection: string
  readonly destination: string
}

interface Plan {
  readonly name: string
  readonly source?: object
  readonly rules?: Rules
  readonly rate?: number
  /** The call that brings about a state; states are counted from 0, which is how the subject was made. */
  readonly change: (state: number, ids: Ids, target: string) => readonly [method: string, path: string, body?: object]
  /** A request that tells states apart, sent while `state` is the latest that has returned. */
  readonly probe: (n: number, state: number) => Probe
  /** In which states nothing may be delivered. */
  readonly silent?: (state: number) => boolean
  /** Whether what was pending when a silent state began is never delivered. */
  readonly cancels?: boolean
  /** Decided behind the sender's back: also by a state that came after its answer. */
  readonly late?: boolean
  /** The path by which the target must see what was sent in that state. */
  readonly path?: (state: number) => string
}

const json = { "content-type": "application/json" }
const odd = (state: number): boolean => state % 2 === 1
const plain = (n: number, expected: Probe["expected"]): Probe => ({
  method: "POST",
  headers: json,
  body: `{"n":${n}}`,
  expected
})
const secretOf = (state: number): string => `whsec-of-state-${state}`
const hmacAuth = (state: number) => ({ auth_type: "HMAC", auth: { webhook_secret_key: secretOf(state) } })

/** No request is a duplicate: the rule makes the filter one that the connection's actor decides by. */
const slowFilter = (rule: number): Rules => [
  { type: "deduplicate", window: 1_000, include_fields: ["body.n"] },
  { type: "filter", body: { rule } }
]

/** Code that lets one rule's requests through. */
const only = (rule: number): string =>
  `addHandler("transform", (request) => { if (request.body.rule !== ${rule}) throw new Error("no"); return request })`

/** In turn for the state that has just come into force and for the one before it. */
const byRule = (n: number, now: number, otherwise: Outcome): Probe => {
  const rule = now - (n % 2)
  return {
    method: "POST",
    headers: json,
    body: JSON.stringify({ n, rule }),
    expected: (state) => (state === rule ? "event" : otherwise)
  }
}

const plans: ReadonlyArray<Plan> = [
  {
    name: "filter",
    rules: [{ type: "filter", body: { rule: 0 } }],
    change: (state, { connection }) => [
      "PATCH",
      `/connections/${connection}`,
      { rules: [{ type: "filter", body: { rule: state } }] }
    ],
    probe: (n, now) => byRule(n, now, "filtered")
  },
  {
    name: "secret",
    source: { config: hmacAuth(0) },
    change: (state, { source }) => ["PATCH", `/sources/${source}`, { config: hmacAuth(state) }],
    probe: (n, now) => {
      const signer = now - (n % 2)
      const body = `{"n":${n}}`
      const signature = createHmac("sha256", secretOf(signer)).update(body).digest("hex")
      return {
        method: "POST",
        headers: { ...json, "x-signature": signature },
        body,
        expected: (state) => (state === signer ? "event" : "SOURCE_AUTH_FAILED")
      }
    }
  },
  {
    name: "methods",
    source: { config: { allowed_http_methods: ["POST"] } },
    change: (state, { source }) => [
      "PATCH",
      `/sources/${source}`,
      { config: { allowed_http_methods: [odd(state) ? "PUT" : "POST"] } }
    ],
    probe: (n) => {
      const method = n % 2 === 0 ? "POST" : "PUT"
      return {
        ...plain(n, (state) => (odd(state) === (method === "PUT") ? "event" : "SOURCE_METHOD_NOT_ALLOWED")),
        method
      }
    }
  },
  {
    name: "source",
    change: (state, { source }) => ["PUT", `/sources/${source}/${odd(state) ? "disable" : "enable"}`],
    probe: (n) => plain(n, (state) => (odd(state) ? "SOURCE_DISABLED" : "event")),
    silent: odd,
    cancels: true
  },
  {
    name: "connection",
    rate: 40,
    change: (state, { connection }) => ["PUT", `/connections/${connection}/${odd(state) ? "disable" : "enable"}`],
    probe: (n) => plain(n, (state) => (odd(state) ? "unrouted" : "event")),
    silent: odd,
    cancels: true
  },
  {
    name: "destination",
    rate: 40,
    change: (state, { destination }) => ["PUT", `/destinations/${destination}/${odd(state) ? "disable" : "enable"}`],
    probe: (n) => plain(n, (state) => (odd(state) ? "unrouted" : "event")),
    silent: odd,
    cancels: true
  },
  {
    name: "pause",
    change: (state, { connection }) => ["PUT", `/connections/${connection}/${odd(state) ? "pause" : "unpause"}`],
    probe: (n) => plain(n, () => "event"),
    silent: odd
  },
  {
    name: "pause-paced",
    rate: 60,
    change: (state, { connection }) => ["PUT", `/connections/${connection}/${odd(state) ? "pause" : "unpause"}`],
    probe: (n) => plain(n, () => "event"),
    silent: odd
  },
  {
    name: "url",
    change: (state, { destination }, target) => [
      "PATCH",
      `/destinations/${destination}`,
      { config: { url: `${target}/url-${state}` } }
    ],
    probe: (n) => plain(n, () => "event"),
    path: (state) => `/url-${state}`
  },
  {
    name: "slow-filter",
    late: true,
    rules: slowFilter(0),
    change: (state, { connection }) => ["PATCH", `/connections/${connection}`, { rules: slowFilter(state) }],
    probe: (n, now) => byRule(n, now, "filtered")
  },
  {
    name: "transformation",
    late: true,
    rules: [{ type: "transform", transformation: { name: "only", code: only(0) } }],
    change: (state) => ["PUT", "/transformations", { name: "only", code: only(state) }],
    probe: (n, now) => byRule(n, now, "failed")
  }
]

interface Sent {
  readonly n: number
  readonly subject: Subject
  readonly process: Process
  readonly probe: Probe
  /** The latest state that had returned when it was sent. */
  readonly from: number
  /** The latest that had been asked for when it was answered. */
  to: number
  status: number
}

class Subject {
  readonly plan: Plan
  readonly ids: Ids
  /** The latest state asked for, and the latest whose call has returned. */
  asked = 0
  returned = 0
  /** By state (Unix ms): when it was asked for, and when it had returned. */
  readonly askedAt: Array<number> = [Date.now()]
  readonly returnedAt: Array<number> = [Date.now()]

  constructor(plan: Plan, ids: Ids) {
    this.plan = plan
    this.ids = ids
  }
}

export interface ChangeReport {
  readonly changes: number
  readonly requests: number
  /** Requests sent after a change had returned and before the next one was asked for: only one state may have handled them. */
  readonly decided: number
  readonly attempts: number
  /** How long changes took to return, in ms. */
  readonly changeMs: { readonly p50: number; readonly p99: number; readonly worst: number }
  /** What went wrong, in words. */
  readonly violations: ReadonlyArray<string>
}

/** Probes sent on each process the moment that a change returns. */
const probesAtOnce = 2
/** Requests per second, in all, beside the probes. */
const loadPerSecond = 100
/** How long a state lasts at the least, and how much longer by chance (ms). */
const lasts = { least: 30, more: 150 }

export const runChanges = async (gateways: Gateways<Process>, changes: number): Promise<ChangeReport> => {
  const target = await Target.start()
  const sent: Array<Sent> = []
  const trouble: Array<string> = []
  const durations: Array<number> = []
  const underWay = new Set<Promise<void>>()
  let changed = 0
  let n = 0

  const other = (): Process => (Math.random() < 0.5 ? "a" : "b")

  const make = async (plan: Plan): Promise<Subject> => {
    const source = await gateways.api("a", "POST", "/sources", { name: plan.name, ...plan.source })
    const destination = await gateways.api("a", "POST", "/destinations", {
      name: plan.name,
      config: {
        url: `${target.origin}${plan.path?.(0) ?? `/${plan.name}`}`,
        path_forwarding_disabled: true,
        rate_limit: plan.rate ?? null
      }
    })
    const connection = await gateways.api("a", "POST", "/connections", {
      name: plan.name,
      source_id: source.id,
      destination_id: destination.id,
      rules: plan.rules ?? []
    })
    return new Subject(plan, { source: source.id, connection: connection.id, destination: destination.id })
  }

  const ask = async (record: Sent): Promise<void> => {
    const { n, probe, process, subject } = record
    try {
      const answer = await gateways.call(process, probe.method, `/e/${subject.ids.source}`, {
        headers: { ...probe.headers, "webhook-id": String(n) },
        body: probe.body
      })
      record.status = answer.status
      record.to = subject.asked
    } catch (error) {
      trouble.push(`request ${n} to ${process}: ${String(error)}`)
    }
  }

  const send = (subject: Subject, process: Process): Promise<void> => {
    const number = n++
    const probe = subject.plan.probe(number, subject.returned)
    const record: Sent = { n: number, subject, process, probe, from: subject.returned, to: subject.asked, status: 0 }
    sent.push(record)
    const answered = ask(record).finally(() => underWay.delete(answered))
    underWay.add(answered)
    return answered
  }

  const changeOften = async (subject: Subject): Promise<void> => {
    while (changed < changes && trouble.length === 0) {
      changed++
      const state = subject.asked + 1
      const [method, path, body] = subject.plan.change(state, subject.ids, target.origin)
      subject.asked = state
      subject.askedAt[state] = Date.now()
      const began = performance.now()
      try {
        await gateways.api(other(), method, path, body)
      } catch (error) {
        trouble.push(`change ${changed}, state ${state} of ${subject.plan.name}: ${String(error)}`)
        return
      }
      durations.push(performance.now() - began)
      subject.returnedAt[state] = Date.now()
      subject.returned = state
      const probes = Array.from({ length: probesAtOnce }, () => [send(subject, "a"), send(subject, "b")])
      // Every other state lasts until they have been answered, however slow the machine is: of those it is known what handled them.
      if (state % 2 === 0) await Promise.all(probes.flat())
      await sleep(lasts.least + Math.random() * lasts.more)
    }
  }

  const subjects = await Promise.all(plans.map(make))
  const load = setInterval(() => void send(subjects[n % subjects.length]!, other()), 1_000 / loadPerSecond)
  try {
    await Promise.all(subjects.map(changeOften))
  } finally {
    clearInterval(load)
  }
  await Promise.all(underWay)
  const settled = subjects.map(({ ids }) => ids.connection)
  await waitUntil(
    "every event has come to its end or is held",
    async () => {
      const rows = await gateways.query(
        `select count(*)::int4 as n from events e join connections c on c.id = e.connection_id
         where e.state = 'PENDING' and c.paused_at is null and e.connection_id = any($1)
         union all select count(*)::int4 from pending_routes`,
        [settled]
      )
      return rows.every(({ n }) => n === 0)
    },
    { patienceMs: 60_000, everyMs: 200 }
  )

  const records = await recordsOf(gateways)
  const violations = [
    ...trouble,
    ...sent.flatMap((request) => verifyRequest(request, records)),
    ...subjects.flatMap((subject) => verifyDeliveries(subject, records))
  ]
  await target.close()
  durations.sort((a, b) => a - b)
  const at = (share: number): number => Math.round(durations[Math.floor(share * (durations.length - 1))] ?? 0)
  return {
    changes: changed,
    requests: sent.length,
    decided: sent.filter(({ from, to }) => from === to).length,
    attempts: records.attempts.length,
    changeMs: { p50: at(0.5), p99: at(0.99), worst: at(1) },
    violations
  }
}

interface EventRecord {
  readonly n: string
  readonly connection: string
  readonly createdAt: number
  readonly state: string
}

interface AttemptRecord extends EventRecord {
  readonly deliveredAt: number
  readonly url: string
}

interface Records {
  readonly requests: ReadonlyMap<
    string,
    { readonly cause: string | null; readonly events: number; readonly ignored: string }
  >
  readonly attempts: ReadonlyArray<AttemptRecord>
}

/** What is stored, by the numbers of the requests. */
const recordsOf = async (gateways: Gateways<Process>): Promise<Records> => {
  const requests = await gateways.query(
    `select r.external_id as n, r.rejection_cause as cause, r.events_count, r.ignored_count,
       (select count(*)::int4 from events e where e.request_id = r.id) as events,
       (select coalesce(string_agg(i.cause || ' ' || i.meta::text, ';'), '') from ignored_events i
        where i.request_id = r.id) as ignored
     from requests r`
  )
  const attempts = await gateways.query(
    `select r.external_id as n, a.connection_id as connection, e.created_at, e.state, a.delivered_at, a.requested_url as url
     from attempts a join events e on e.id = a.event_id join requests r on r.id = a.request_id`
  )
  const ms = (value: unknown): number => new Date(value as string | Date).getTime()
  const byNumber = new Map<string, { cause: string | null; events: number; ignored: string }>()
  for (const row of requests) {
    const key = String(row["n"])
    const stored = {
      cause: row["cause"] as string | null,
      // A counter that disagrees with its rows is no outcome at all.
      events: row["events"] === row["events_count"] ? (row["events"] as number) : Number.NaN,
      ignored: String(row["ignored"])
    }
    byNumber.set(key, byNumber.has(key) ? { ...stored, events: Number.NaN } : stored)
  }
  return {
    requests: byNumber,
    attempts: attempts.map((row) => ({
      n: String(row["n"]),
      connection: String(row["connection"]),
      createdAt: ms(row["created_at"]),
      state: String(row["state"]),
      deliveredAt: ms(row["delivered_at"]),
      url: String(row["url"])
    }))
  }
}

const statuses: Readonly<Record<Outcome, number>> = {
  event: 200,
  filtered: 200,
  failed: 200,
  unrouted: 200,
  SOURCE_DISABLED: 403,
  SOURCE_METHOD_NOT_ALLOWED: 405,
  SOURCE_AUTH_FAILED: 401
}

const is = (outcome: Outcome, stored: { cause: string | null; events: number; ignored: string }): boolean => {
  const { cause, events, ignored } = stored
  if (outcome === "event") return cause === null && events === 1 && ignored === ""
  if (outcome === "filtered") return cause === null && events === 0 && ignored === `FILTERED ["body"]`
  if (outcome === "failed") return cause === null && events === 0 && ignored.startsWith("TRANSFORMATION_FAILED")
  if (outcome === "unrouted") return cause === null && events === 0 && ignored === ""
  return cause === outcome && events === 0 && ignored === ""
}

const verifyRequest = (request: Sent, records: Records): ReadonlyArray<string> => {
  const { from, n, probe, process, status, subject, to } = request
  const stored = records.requests.get(String(n))
  const where = `${subject.plan.name}, request ${n} to ${process}, sent in state ${from}, answered in ${to}`
  if (stored === undefined) return [`${where}: not stored (answer ${status})`]
  const last = subject.plan.late === true ? subject.asked : to
  for (let state = from; state <= last; state++) {
    const outcome = probe.expected(state)
    if (statuses[outcome] === status && is(outcome, stored)) return []
  }
  return [`${where}: answer ${status}, stored ${JSON.stringify(stored)}, expected ${probe.expected(from)}`]
}

/** Deliveries against what their subject allowed when they started. */
const verifyDeliveries = (subject: Subject, records: Records): ReadonlyArray<string> => {
  const { ids, plan } = subject
  const violations: Array<string> = []
  const attempts = records.attempts.filter((attempt) => attempt.connection === ids.connection)
  for (let state = 1; state <= subject.asked; state++) {
    const begins = subject.returnedAt[state]!
    const ends = subject.askedAt[state + 1] ?? Number.POSITIVE_INFINITY
    for (const { createdAt, deliveredAt, n, url } of attempts) {
      if (plan.silent?.(state) === true) {
        if (deliveredAt > begins && deliveredAt < ends) {
          violations.push(
            `${plan.name}, request ${n}: delivered ${deliveredAt - begins} ms after state ${state} had returned`
          )
        }
        if (plan.cancels === true && createdAt < subject.askedAt[state]! && deliveredAt > begins) {
          violations.push(`${plan.name}, request ${n}: delivered although state ${state} had cancelled it`)
        }
      }
      if (plan.path !== undefined && deliveredAt > begins && deliveredAt < ends && !url.endsWith(plan.path(state))) {
        violations.push(`${plan.name}, request ${n}: delivered to ${url} in state ${state}`)
      }
    }
  }
  return violations
}
