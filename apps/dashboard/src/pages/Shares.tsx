import { Link } from "@tanstack/react-router"
import type { Row } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { type Filter, FilterBar } from "../parts/FilterBar.tsx"
import { useFilters } from "../parts/Filters.tsx"
import { Status } from "../parts/Status.tsx"
import { PagedRows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

const filters: ReadonlyArray<Filter> = [{ name: "status", label: "Status" }]

/** Links to requests that anybody can open. */
export const Shares = () => {
  const { client, team } = useSession()
  const { status } = useFilters().search
  const query = status === undefined ? {} : { status: [status as Row<"ListedShare">["status"]] }
  return (
    <>
      <header>
        <h1>Shares</h1>
        <div className="filters">
          <FilterBar path="/shares" of={filters} />
        </div>
      </header>
      <p className="muted">
        A share is a link by which anybody can read one request, without its secrets. The gateway shows the link only
        when the share is made.
      </p>
      <PagedRows
        label="Shares"
        keys={["shares", team, query]}
        columns={["Request", "Title", "Status", "Opened", "Ends", ""]}
        read={(page) => client.get("/shares", { params: { query: { ...query, ...page } } })}
        row={({ access_count, expires_at, id, request_id, status, title }) => [
          <Link key="request" to={`/requests/${request_id}`} className="mono">
            {request_id}
          </Link>,
          <bdi key="title">{title ?? "–"}</bdi>,
          status === "expired" ? (
            <span key="status" className="badge">
              Expired
            </span>
          ) : (
            <Status key="status" of={status} />
          ),
          access_count.toLocaleString(),
          <Time key="ends" at={expires_at} />,
          status === "active" ? (
            <Action
              call="DELETE /requests/{id}/share/{share}"
              key="revoke"
              asks="End this share?"
              run={() =>
                client.delete("/requests/{id}/share/{share}", { params: { path: { id: request_id, share: id } } })
              }
            >
              Revoke
            </Action>
          ) : null
        ]}
        empty={
          <p>
            No share is found. Open a <Link to="/requests">request</Link>, and share it.
          </p>
        }
      />
    </>
  )
}
