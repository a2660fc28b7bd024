import type { Sent } from "./Load.ts"
import type { Records } from "./Oracle.ts"
import type { Route } from "./Routes.ts"
import type { Arrival } from "./Target.ts"

/**
 * The operations of a round in the form that an independent checker reads (`test/faults/porcupine`). Each has the earliest and the latest time at
 * which it may have taken effect. Null: it may have taken effect at any later time. Times are microseconds since the round began.
 */
export interface History {
  /** Whether memory was lost: then the attempt that was under way may be repeated. */
  readonly mayRepeat: boolean
  /** For each event: its acceptance, its attempts as the target saw them, and what the database says in the end. */
  readonly events: ReadonlyArray<Part<EventOperation>>
  /** For each ordering key of a connection: its events in their order, and when each began and ended at the target. */
  readonly lines: ReadonlyArray<Part<LineOperation>>
}

interface Part<Operation> {
  readonly name: string
  readonly operations: ReadonlyArray<Operation & Interval>
}

interface Interval {
  readonly call: number
  readonly return: number | null
}

type EventOperation =
  | { readonly kind: "accept" }
  | { readonly kind: "attempt"; readonly attempt: number; readonly isSuccess: boolean }
  | { readonly kind: "read"; readonly state: string; readonly attempts: number }

interface LineOperation {
  readonly kind: "enter" | "begin" | "over"
  readonly event: string
}

/** A target notices the end of an exchange a little later than the gateway, which then begins the next one. */
const sameMomentMs = 5

export interface Observed {
  readonly routes: ReadonlyArray<Route>
  readonly records: Records
  readonly arrivals: ReadonlyArray<Arrival>
  /** Those of them that lines are made of. */
  readonly walked: ReadonlyArray<Arrival>
  readonly sent: ReadonlyArray<Sent>
  readonly beganAt: number
  readonly mayRepeat: boolean
}

export const historyOf = ({ arrivals, beganAt, mayRepeat, records, routes, sent, walked }: Observed): History => {
  const time = (at: number): number => Math.round((at - beganAt) * 1_000)
  const end = (at: number | null): number | null => (at === null || !Number.isFinite(at) ? null : time(at))
  const sentBy = new Map(sent.map((one) => [one.n, one]))
  const seenOf = Map.groupBy(arrivals, ({ eventId }) => eventId)
  const walkedOf = Map.groupBy(walked, ({ eventId }) => eventId)
  /** When the request was under way; one without an answer may take effect late. */
  const accepted = (n: number): Interval => {
    const one = sentBy.get(n)
    return {
      call: one === undefined ? 0 : time(one.sentAt),
      return: one?.requestId == null ? null : end(one.answeredAt)
    }
  }
  const overAt = Math.max(beganAt, ...arrivals.map(({ at, endedAt }) => (Number.isFinite(endedAt) ? endedAt : at)))
  const last = { call: time(overAt) + 1_000_000, return: time(overAt) + 1_000_001 }

  const routed = [...records.events.values()].filter(({ retryOf }) => retryOf === null)
  const events: Array<Part<EventOperation>> = routed.map((event) => {
    const n = records.requests.get(event.requestId)?.n ?? Number.NaN
    const attempts = (seenOf.get(event.id) ?? []).map(({ answered, at, attempt, endedAt }) => ({
      kind: "attempt" as const,
      attempt,
      isSuccess: answered === 200,
      call: time(at),
      return: end(endedAt)
    }))
    const read = { kind: "read" as const, state: event.state, attempts: event.attempts, ...last }
    return { name: event.id, operations: [{ kind: "accept", ...accepted(n) }, ...attempts, read] }
  })

  // Requests that were acknowledged and should have become events, but have not.
  const known = new Set(routed.map(({ connectionId, requestId }) => `${requestId} ${connectionId}`))
  const bySource = new Map(routes.map((route) => [route.sourceId, route.connections]))
  for (const { kind, n, requestId, sourceId } of sent) {
    if (requestId === null) continue
    for (const { id, once, onlyKind } of bySource.get(sourceId) ?? []) {
      if (once || (onlyKind !== null && onlyKind !== kind) || known.has(`${requestId} ${id}`)) continue
      const read = { kind: "read" as const, state: "ABSENT", attempts: 0, ...last }
      events.push({ name: `${requestId} ${id}`, operations: [{ kind: "accept", ...accepted(n) }, read] })
    }
  }

  const lines: Array<Part<LineOperation>> = []
  for (const { id, key, order } of routes.flatMap(({ connections }) => connections)) {
    if (order === null) continue
    const ofLine = Map.groupBy(
      routed.filter(({ connectionId }) => connectionId === id),
      ({ requestId }) => records.requests.get(requestId)?.line
    )
    for (const [line, those] of ofLine) {
      const operations = those.flatMap((event): Array<LineOperation & Interval> => {
        const seen = walkedOf.get(event.id) ?? []
        const entered = {
          kind: "enter" as const,
          event: event.id,
          ...accepted(records.requests.get(event.requestId)?.n ?? Number.NaN)
        }
        if (seen.length === 0) return [entered]
        const begunAt = Math.min(...seen.map(({ at }) => at))
        const final = order === "block" ? Math.max(...seen.map(({ attempt }) => attempt)) : 1
        const until = seen.find(({ attempt }) => attempt === final)?.endedAt ?? Number.POSITIVE_INFINITY
        return [
          entered,
          { kind: "begin", event: event.id, call: time(begunAt), return: time(begunAt) + 1 },
          {
            kind: "over",
            event: event.id,
            call: Number.isFinite(until) ? time(Math.max(begunAt, until - sameMomentMs)) + 1 : time(begunAt) + 1,
            return: Number.isFinite(until) ? time(until) + 2 : null
          }
        ]
      })
      lines.push({ name: `${key} line ${line}`, operations })
    }
  }
  return { mayRepeat, events, lines }
}
