import type { Row } from "../../gateway.ts"
import { wordsOf } from "../../parts/Status.tsx"
import { lengthOf } from "../../parts/Time.tsx"
import { causes } from "./Causes.ts"

type Trace = Row<"Trace">
type Event = Row<"Event">

/** A bar in a row of the trace: from one time to another (Unix ms), in the color of its status. */
export interface Span {
  readonly id: string
  readonly from: number
  readonly to: number
  readonly kind: "wait" | "work"
  readonly status: string
  /** The whole of it in words. */
  readonly said: string
}

/** A row of the trace: a connection with its event, a connection that ignored the request, or a workflow run. */
export interface Lane {
  readonly id: string
  readonly kind: "Connection" | "Workflow" | "Upstream"
  readonly connectionId: string | null
  /** Null: it is the connection's. */
  readonly name: string | null
  readonly status: string
  readonly note: string | null
  readonly link: string | null
  readonly spans: ReadonlyArray<Span>
}

const ms = (at: string): number => Date.parse(at)

const executionSpan = (execution: Trace["transformations"][number]): Span => {
  const { created_at, error_message, id, stats } = execution
  const to = ms(created_at)
  return {
    id,
    from: to - stats.duration_ms,
    to,
    kind: "work",
    status: error_message === null ? "succeeded" : "failed",
    said: `Transformation, ${lengthOf(stats.duration_ms)}${error_message === null ? "" : `: ${error_message}`}`
  }
}

const attemptSpan = (attempt: Trace["attempts"][number]): Span => {
  const { attempt_number, delivered_at, delivery_latency, error_code, id, responded_at, status } = attempt
  const sent = ms(delivered_at)
  const from = sent - delivery_latency
  const to = responded_at === null ? sent : ms(responded_at)
  const answer = attempt.response_status ?? error_code ?? ""
  return {
    id,
    from,
    to,
    kind: "work",
    status,
    said: `Attempt ${attempt_number}: ${wordsOf(status)} ${answer}, after ${lengthOf(to - from)}`
  }
}

/** The waits between the bars of a row, from its beginning on. `until`: when the next work is due. */
const withWaits = (id: string, begin: number, works: ReadonlyArray<Span>, until: number | null): Array<Span> => {
  const spans: Array<Span> = []
  const wait = (from: number, to: number) => {
    if (to <= from) return
    spans.push({
      id: `${id} ${from}`,
      from,
      to,
      kind: "wait",
      status: "",
      said: `Waited ${lengthOf(to - from)}`
    })
  }
  let at = begin
  for (const work of works.toSorted((a, b) => a.from - b.from)) {
    wait(at, work.from)
    spans.push(work)
    at = Math.max(at, work.to)
  }
  if (until !== null) wait(at, until)
  return spans
}

const eventLane = (trace: Trace, event: Event): Lane => {
  const { connection_id, created_at, id, is_retry, next_attempt_at, status } = event
  const executions = (trace.transformations_by_event_id[id] ?? []).map(executionSpan)
  const attempts = (trace.attempts_by_event_id[id] ?? []).map(attemptSpan)
  const begin = executions.reduce((least, { from }) => Math.min(least, from), ms(created_at))
  return {
    id,
    kind: "Connection",
    connectionId: connection_id,
    name: null,
    status,
    note: is_retry ? "Retry" : null,
    link: `/events/${id}`,
    spans: withWaits(id, begin, [...executions, ...attempts], next_attempt_at === null ? null : ms(next_attempt_at))
  }
}

/** The rows of a request's trace: its upstream, its connections, and the workflow runs. */
export const lanesOf = (trace: Trace): ReadonlyArray<Lane> => {
  const { events, ignored_events, proxy_exchange, skipped_connections, transformations, workflow_runs } = trace
  const upstream: ReadonlyArray<Lane> =
    proxy_exchange === null
      ? []
      : [
          {
            id: proxy_exchange.id,
            kind: "Upstream",
            connectionId: null,
            name: "Upstream",
            status: proxy_exchange.error_code === null ? "succeeded" : "failed",
            note: null,
            link: null,
            spans: [
              {
                id: proxy_exchange.id,
                from: ms(proxy_exchange.started_at),
                to: ms(proxy_exchange.responded_at ?? proxy_exchange.started_at),
                kind: "work",
                status: proxy_exchange.error_code === null ? "succeeded" : "failed",
                said: `Upstream: ${proxy_exchange.error_code ?? proxy_exchange.response_status ?? "no answer"}`
              }
            ]
          }
        ]
  const ignored = ignored_events.map(({ cause, connection_id, created_at, id }): Lane => {
    const failed = transformations.filter((one) => one.event_id === null && one.connection_id === connection_id)
    const said = `Ignored: ${causes[cause] ?? cause}`
    return {
      id,
      kind: "Connection",
      connectionId: connection_id,
      name: null,
      status: "Ignored",
      note: said,
      link: `/connections/${connection_id}`,
      spans: [
        ...failed.map(executionSpan),
        { id, from: ms(created_at), to: ms(created_at), kind: "work", status: "skipped", said }
      ]
    }
  })
  const skipped = skipped_connections.map(({ cause, connection_id, connection_name }): Lane => ({
    id: connection_id,
    kind: "Connection",
    connectionId: connection_id,
    name: connection_name,
    status: "Skipped",
    note: `Skipped: ${causes[cause] ?? cause}`,
    link: `/connections/${connection_id}`,
    spans: []
  }))
  const runs = workflow_runs.map((run): Lane => {
    const { created_at, error_message, finished_at, id, started_at, status, workflow_id, workflow_name } = run
    const link = `/workflows/${workflow_id}/runs/${id}`
    const steps = (run.steps ?? []).flatMap((step): ReadonlyArray<Span> => {
      if (step.started_at === null) return []
      const from = ms(step.started_at)
      const to = ms(step.finished_at ?? step.started_at)
      const name = step.name === "" ? step.step_id : step.name
      const said = `Step ${name}: ${wordsOf(step.status)}, after ${lengthOf(to - from)}`
      return [{ id: step.id, from, to, kind: "work", status: step.status, said }]
    })
    const whole: ReadonlyArray<Span> =
      steps.length > 0 || started_at === null
        ? steps
        : [
            {
              id,
              from: ms(started_at),
              to: ms(finished_at ?? started_at),
              kind: "work",
              status,
              said: `Run: ${wordsOf(status)}`
            }
          ]
    return {
      id,
      kind: "Workflow",
      connectionId: null,
      name: workflow_name,
      status,
      note: error_message,
      link,
      spans: withWaits(id, ms(started_at ?? created_at), whole, null)
    }
  })
  return [...upstream, ...events.map((event) => eventLane(trace, event)), ...ignored, ...skipped, ...runs]
}

/**
 * Where a time is on the axis (0 to 1). A stretch in which nothing begins or ends is as wide as the logarithm of its length: a retry
 * after an hour does not hide what took milliseconds.
 */
export const scaleOf = (begin: number, lanes: ReadonlyArray<Lane>): ((at: number) => number) => {
  const all = lanes.flatMap(({ spans }) => spans.flatMap(({ from, to }) => [from, to]))
  const times = [...new Set([begin, ...all])].toSorted((a, b) => a - b)
  const places = new Map<number, number>()
  let place = 0
  for (const [index, time] of times.entries()) {
    if (index > 0) place += Math.log1p(time - times[index - 1]!) + 0.5
    places.set(time, place)
  }
  return (at) => (place === 0 ? 0 : (places.get(at) ?? 0) / place)
}
