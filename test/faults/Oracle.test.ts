import { describe, expect, it } from "vitest"
import { Findings } from "./Findings.ts"
import { checkOrder, readInTime, type Records } from "./Oracle.ts"
import type { Connection } from "./Routes.ts"
import type { Arrival } from "./Target.ts"

const connection = { id: "web_1", key: "ordered-1", order: "block" } as Connection
const routes = [{ sourceId: "src_1", connections: [connection] }]

/** Two events with the same ordering key. The first attempt got no answer, and was recorded at 10. The target sees the second event from 30 to 31. */
const line = (first: { readonly seenAt: number; readonly status: number | null }) => {
  const arrival = (eventId: string, at: number): Arrival => ({
    key: "ordered-1",
    eventId,
    requestId: `of-${eventId}`,
    attempt: 1,
    n: 1,
    shaped: null,
    at,
    port: 1,
    answered: null,
    endedAt: at + 1
  })
  const attempt = (responseStatus: number | null, finishedAt: number) => [
    { n: 1, successful: false, responseStatus, deliveredAt: 5, finishedAt }
  ]
  const stored = (id: string) => ({ requestId: `of-${id}`, connectionId: "web_1", id }) as never
  const records: Records = {
    requests: new Map(["a", "b"].map((id) => [`of-${id}`, { line: 0 } as never])),
    events: new Map(["a", "b"].map((id) => [id, stored(id)])),
    attempts: new Map([
      ["a", attempt(first.status, 10)],
      ["b", attempt(200, 31)]
    ]),
    ignored: [],
    transformed: new Set()
  }
  const sent = ["a", "b"].map((id, n) => ({ requestId: `of-${id}`, sentAt: n * 2, answeredAt: n * 2 + 1 }) as never)
  const findings = new Findings()
  const arrivals = readInTime([arrival("a", first.seenAt), arrival("b", 30)], records)
  checkOrder(findings, routes, records, arrivals, sent)
  return findings.count("events of one key arrive in ingest order")
}

describe("The order that the oracle of the crash test demands", () => {
  it("An attempt without an answer holds up nobody after it was recorded, however late its target reads it", () => {
    expect(line({ seenAt: 75, status: null })).toBe(0)
  })

  it("An attempt that was answered, and is seen after the next event, is out of order", () => {
    expect(line({ seenAt: 75, status: 500 })).toBe(1)
  })

  it("An event that goes before the one ahead of it is over is out of order, also if that had no answer", () => {
    const records = { attempts: new Map([["a", [{ n: 1, responseStatus: null, finishedAt: 80 }]]]) } as never
    const seen = { eventId: "a", attempt: 1, at: 75 } as Arrival
    expect(readInTime([seen], records)).toEqual([seen])
  })
})
