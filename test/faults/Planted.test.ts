import { describe, expect, it } from "vitest"
import type { Course } from "./Fault.ts"
import { Findings, type Promised } from "./Findings.ts"
import type { Sent } from "./Load.ts"
import { checkDeliveries, checkEvents, checkRouting, checkSenders, duplicatesOf, type Records } from "./Oracle.ts"
import { checkDuplicates } from "./Round.ts"
import type { Connection, Route } from "./Routes.ts"
import type { Arrival } from "./Target.ts"

/* A round in which all is well, and what the checks of a round say when one thing in it is wrong. */

const connection = {
  id: "web_1",
  key: "plain-1",
  retry: null,
  delayMs: 0,
  onlyKind: null,
  once: false,
  shaped: false
} as Connection
const routes: ReadonlyArray<Route> = [{ sourceId: "src_1", connections: [connection] }]

const sent = { n: 7, sourceId: "src_1", status: 200, requestId: "req_1", retryAfter: null } as Sent
const event = {
  id: "evt_1",
  requestId: "req_1",
  connectionId: "web_1",
  state: "SUCCESSFUL",
  attempts: 1,
  createdAt: 10,
  retryOf: null
}
const request = { sourceId: "src_1", status: "accepted", n: 7, kind: "note", group: "a", line: 0 }
const attempt = { n: 1, successful: true, responseStatus: 200, deliveredAt: 20, finishedAt: 30 }
const arrival = {
  key: "plain-1",
  eventId: "evt_1",
  requestId: "req_1",
  attempt: 1,
  n: 7,
  shaped: null,
  at: 21,
  port: 1,
  answered: 200,
  endedAt: 29
} as Arrival

interface Planted {
  readonly sent?: Sent
  readonly records?: Partial<Records>
  readonly arrivals?: ReadonlyArray<Arrival>
  readonly crashes?: Course["crashes"]
}

/** The promises that the checks find broken. */
const broken = ({ arrivals = [arrival], crashes = [], records = {}, sent: one = sent }: Planted = {}) => {
  const findings = new Findings()
  const all: Records = {
    requests: new Map([["req_1", request]]),
    events: new Map([["evt_1", event]]),
    attempts: new Map([["evt_1", [attempt]]]),
    ignored: [],
    transformed: new Set(),
    ...records
  }
  checkSenders(findings, [one], all)
  checkRouting(findings, routes, all)
  checkEvents(findings, routes, all, { clocksAgree: true })
  checkDeliveries(findings, routes, all, arrivals)
  const course = { recoverableAt: 0, limitMs: 0, crashes, disturbed: [] }
  const repetition = checkDuplicates(findings, course, {}, duplicatesOf(arrivals))
  const promises: ReadonlyArray<Promised> = [
    "an acknowledged request is stored",
    "senders get 2xx, or 503 with Retry-After",
    "one request, one event per connection",
    "what is accepted comes to an end",
    "attempts are recorded once, without gaps",
    "a recorded success was received",
    "what was delivered is recorded",
    "what is delivered is what was sent",
    "retries and delays keep to their rule",
    "nothing is delivered twice without a crash"
  ]
  return { promises: promises.filter((promised) => findings.count(promised) > 0), ...repetition }
}

const copy = { ...arrival, at: 90, endedAt: 95 }

const planted: ReadonlyArray<readonly [string, Planted, ReadonlyArray<Promised>]> = [
  ["nothing", {}, []],
  [
    "an acknowledged request that is gone with its event",
    { records: { requests: new Map(), events: new Map(), attempts: new Map() }, arrivals: [] },
    ["an acknowledged request is stored"]
  ],
  [
    "a stored request that is not the one that was sent",
    { sent: { ...sent, n: 8 } },
    ["an acknowledged request is stored"]
  ],
  [
    "a refusal without Retry-After",
    { sent: { ...sent, requestId: null, status: 503 } },
    ["senders get 2xx, or 503 with Retry-After"]
  ],
  [
    "an event that was never made",
    { records: { events: new Map(), attempts: new Map() }, arrivals: [] },
    ["one request, one event per connection"]
  ],
  [
    "two events of one request",
    {
      records: {
        events: new Map([event, { ...event, id: "evt_2" }].map((one) => [one.id, one])),
        attempts: new Map(["evt_1", "evt_2"].map((id) => [id, [attempt]]))
      },
      arrivals: [arrival, { ...arrival, eventId: "evt_2" }]
    },
    ["one request, one event per connection"]
  ],
  [
    "an event that was given up",
    { records: { events: new Map([["evt_1", { ...event, state: "FAILED" }]]) } },
    ["what is accepted comes to an end"]
  ],
  [
    "an attempt that was not recorded",
    { records: { attempts: new Map() } },
    ["attempts are recorded once, without gaps"]
  ],
  ["a success that nobody has received", { arrivals: [] }, ["a recorded success was received"]],
  [
    "a delivery of an event that is not stored",
    { arrivals: [arrival, { ...arrival, eventId: "evt_9" }] },
    ["what was delivered is recorded"]
  ],
  [
    "a delivery with the body of another request",
    { arrivals: [{ ...arrival, n: 8 }] },
    ["what is delivered is what was sent"]
  ],
  [
    "an attempt before its event",
    { records: { attempts: new Map([["evt_1", [{ ...attempt, deliveredAt: 5 }]]]) } },
    ["retries and delays keep to their rule"]
  ],
  ["a delivery that was made twice", { arrivals: [arrival, copy] }, ["nothing is delivered twice without a crash"]]
]

describe("Checks of the crash test", () => {
  it.for(planted)("The checks find what was planted, and nothing else: %s", ([, world, promises]) => {
    expect(broken(world).promises).toEqual(promises)
  })

  it("A second delivery counts as repeated if a crash explains it, and as unexplained if the first was recorded long before", () => {
    const twice = [arrival, copy]
    expect(broken({ arrivals: twice, crashes: [{ at: 50, ports: null }] })).toEqual({
      promises: [],
      repeated: 1,
      unexplained: 0
    })
    expect(broken({ arrivals: twice, crashes: [{ at: 5_000, ports: null }] })).toMatchObject({
      repeated: 0,
      unexplained: 1
    })
  })
})
