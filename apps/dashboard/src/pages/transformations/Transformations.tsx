import type { Row } from "../../gateway.ts"
import { NewLink } from "../../parts/NewLink.tsx"
import { type Column, List } from "../../parts/List.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"

const columns: ReadonlyArray<Column<Row<"Transformation">>> = [
  { title: "Name", width: "1.4fr", cell: ({ name }) => <bdi>{name}</bdi> },
  { title: "Connections", width: "100px", cell: ({ connections_count }) => connections_count.toLocaleString() },
  {
    title: "Executions in 24 hours",
    width: "160px",
    cell: ({ executions_24h_count }) => executions_24h_count.toLocaleString()
  },
  {
    title: "Failed",
    width: "80px",
    cell: ({ executions_24h_failed_count: failed }) =>
      failed === 0 ? "0" : <span className="badge bad">{failed.toLocaleString()}</span>
  },
  { title: "Id", width: "270px", cell: ({ id }) => <span className="mono">{id}</span> },
  { title: "Changed", width: "110px", cell: ({ updated_at }) => <Time at={updated_at} /> }
]

export const Transformations = () => {
  const { client, team } = useSession()
  return (
    <>
      <header>
        <h1>Transformations</h1>
        <NewLink to="/transformations/new" call="POST /transformations">
          New transformation
        </NewLink>
      </header>
      <OnlyOwners may="make transformations" />
      <List
        label="Transformations"
        keys={["transformations", team]}
        columns={columns}
        to={({ id }) => `/transformations/${id}`}
        read={(page) =>
          client.get("/transformations", {
            params: { query: { include_counts: true, ...page } }
          })
        }
        empty={
          <p>There is no transformation yet. A transformation is JavaScript that changes requests on their way.</p>
        }
      />
    </>
  )
}
