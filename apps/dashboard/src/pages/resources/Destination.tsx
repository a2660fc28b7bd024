import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { Issues } from "../../parts/Issues.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { destinationName } from "./DestinationNames.ts"
import { TypedSettings } from "./EditResource.tsx"
import { Head } from "./Head.tsx"

export const Destination = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const destination = useQuery({
    queryKey: ["destination", team, id],
    queryFn: () => client.get("/destinations/{id}", path)
  })
  if (destination.isPending) return <Loading />
  if (destination.isError) return <Failure error={destination.error} retry={destination.refetch} />
  const { created_at, description, held_until, type } = destination.data
  const name = destinationName(type)
  return (
    <>
      <Head
        kind="destinations"
        row={destination.data}
        asksDisable="Stop all its deliveries?"
        asksDelete="Delete it and its connections?"
      />
      <Panel title="Destination">
        <Facts
          of={[
            ["Type", name === type ? type : `${name} (${type})`],
            ["Description", description ?? undefined],
            ["Held until", held_until === null ? undefined : <Time key="held" at={held_until} precise />],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />],
            [
              "Events",
              <Link key="events" to="/events" search={{ destination_id: id }}>
                Show its events
              </Link>
            ],
            [
              "Numbers",
              <Link key="numbers" to="/" search={{ destination_id: id }}>
                Show its charts
              </Link>
            ]
          ]}
        />
        <Issues destination={id} />
      </Panel>
      <TypedSettings kind="Destination" stored={destination.data} />
    </>
  )
}
