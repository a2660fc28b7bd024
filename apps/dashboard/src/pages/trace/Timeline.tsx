import { Link } from "@tanstack/react-router"
import type { Row } from "../../gateway.ts"
import { Name } from "../../parts/Named.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { toneOf, wordsOf } from "../../parts/Status.tsx"
import { lengthOf } from "../../parts/Time.tsx"
import { causes } from "./Causes.ts"
import { TraceChart } from "./TraceChart.tsx"

type Trace = Row<"Trace">
type Item = Row<"TimelineItem">

const linkOf = ({ event_id, kind, workflow_id, workflow_run_id }: Item): string | null => {
  if ((kind === "event" || kind === "attempt") && event_id !== undefined) return `/events/${event_id}`
  return kind === "workflow_run" && workflow_id !== undefined && workflow_run_id !== undefined
    ? `/workflows/${workflow_id}/runs/${workflow_run_id}`
    : null
}

/** All that happened to a request, in the order of its times, each beside the time since the request arrived. */
export const Timeline = ({ trace }: { readonly trace: Trace }) => {
  const begin = Date.parse(trace.request.ingested_at)
  const causeOf = new Map(trace.ignored_events.map(({ cause, id }) => [id, cause]))
  return (
    <Panel title="Trace">
      <TraceChart trace={trace} />
      <ol className="timeline">
        {trace.timeline.map((item) => {
          const { at, ignored_event_id, kind, label, status } = item
          const to = linkOf(item)
          const cause = causeOf.get(ignored_event_id ?? "")
          const what = item.connection_id === undefined ? null : <Name kind="connections" id={item.connection_id} />
          return (
            <li key={`${kind} ${item.id}`}>
              <span className="muted mono">+{lengthOf(Math.max(0, Date.parse(at) - begin))}</span>
              <span className={`dot ${toneOf(status ?? "")}`} />
              <span>
                {to === null ? label : <Link to={to}>{label}</Link>}
                {what === null ? null : <> ({what})</>}
                {cause === undefined ? null : <>: {causes[cause] ?? cause}</>}{" "}
                {status === undefined ? null : <span className="muted">{wordsOf(status)}</span>}
              </span>
            </li>
          )
        })}
      </ol>
      {trace.truncated ? (
        <p className="muted">There is more than is shown here: see the lists of events and attempts.</p>
      ) : null}
    </Panel>
  )
}
