import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Row } from "../../gateway.ts"
import { NamedLink } from "../../parts/Named.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { Rows } from "../../parts/Table.tsx"
import { waiting } from "../Waiting.ts"
import { useCounts } from "./Counts.ts"
import { shareOf } from "./Figures.tsx"

/*
 * Resources by what went wrong in 24 hours, the worst first. Each has the one link that leads to its remedy.
 */

const maxShown = 10

interface Table<Model> {
  readonly kind: "sources" | "destinations"
  readonly label: string
  readonly columns: ReadonlyArray<string>
  readonly empty: string
  /** By how much one is worse than others. */
  readonly points: (model: Model) => number
  readonly row: (model: Model) => ReactNode
}

const Counted = <Model,>({ columns, empty, kind, label, points, row }: Table<Model>) => {
  const counts = useCounts<Model>(kind)
  if (counts.isPending) return <Loading />
  if (counts.isError) return <Failure error={counts.error} retry={counts.refetch} />
  const { isCut, models } = counts.data
  if (models.length === 0) return <p className="muted">{empty}</p>
  const note = isCut ? `the newest ${models.length} ${kind}` : `${models.length}`
  return (
    <>
      <Rows label={label} columns={columns}>
        {models
          .toSorted((a, b) => points(b) - points(a))
          .slice(0, maxShown)
          .map(row)}
      </Rows>
      {models.length > maxShown ? (
        <p className="muted">
          The worst {maxShown} of {note}. <Link to={`/${kind}`}>Show all</Link>
        </p>
      ) : null}
    </>
  )
}

const number = (count: number): string => count.toLocaleString()

export const WorstDestinations = () => (
  <Counted<Row<"DestinationMetrics">>
    kind="destinations"
    label="Destinations by failed events"
    columns={["Destination", "Failed", "Error rate", "Waiting", "Delivered", ""]}
    empty="There is no destination yet."
    points={({ events_24h_failed_count, events_24h_pending_count }) =>
      // Waiting events may still be delivered, so their number only decides between resources with the same number of failures.
      events_24h_failed_count + events_24h_pending_count / (1 + events_24h_pending_count)
    }
    row={({
      destination_id: id,
      events_24h_failed_count: failed,
      events_24h_pending_count: held,
      events_24h_successful_count: delivered
    }) => (
      <tr key={id}>
        <td>
          <NamedLink kind="destinations" id={id} />
        </td>
        <td>{number(failed)}</td>
        <td>{shareOf(failed, failed + delivered)}</td>
        <td>{number(held)}</td>
        <td>{number(delivered)}</td>
        <td>
          {failed > 0 ? (
            <Link to="/events" search={{ destination_id: id, status: "FAILED", from: "now-24h" }}>
              Show the failed ones
            </Link>
          ) : held > 0 ? (
            <Link to="/events" search={{ destination_id: id, status: waiting.name, from: "now-24h" }}>
              Show those that wait
            </Link>
          ) : null}
        </td>
      </tr>
    )}
  />
)

export const WorstSources = () => (
  <Counted<Row<"SourceMetrics">>
    kind="sources"
    label="Sources by rejected requests"
    columns={["Source", "Rejected", "Of all", "Accepted", ""]}
    empty="There is no source yet."
    points={({ requests_24h_rejected_count }) => requests_24h_rejected_count}
    row={({ requests_24h_accepted_count: accepted, requests_24h_rejected_count: rejected, source_id: id }) => (
      <tr key={id}>
        <td>
          <NamedLink kind="sources" id={id} />
        </td>
        <td>{number(rejected)}</td>
        <td>{shareOf(rejected, rejected + accepted)}</td>
        <td>{number(accepted)}</td>
        <td>
          {rejected > 0 ? (
            <Link to="/requests" search={{ source_id: id, status: "rejected", from: "now-24h" }}>
              Show the rejected ones
            </Link>
          ) : null}
        </td>
      </tr>
    )}
  />
)
