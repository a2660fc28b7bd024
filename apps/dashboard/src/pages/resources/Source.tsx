import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import { Copy } from "../../parts/Copy.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { subscriptionFacts } from "../../parts/Subscription.tsx"
import { Time } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { isPosted } from "../posted.ts"
import { SendTest } from "../sources/SendTest.tsx"
import { SetUp } from "../sources/SetUp.tsx"
import { useSourceTypes } from "../sources/SourceTypes.ts"
import { TypedSettings } from "./EditResource.tsx"
import { Head } from "./Head.tsx"

export const Source = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const path = { params: { path: { id } } }
  const source = useQuery({ queryKey: ["source", team, id], queryFn: () => client.get("/sources/{id}", path) })
  const types = useSourceTypes()
  if (source.isPending) return <Loading />
  if (source.isError) return <Failure error={source.error} retry={source.refetch} />
  const { created_at, delivery_mode, description, next_due_at, subscription_state, type, url } = source.data
  const hasChannel = delivery_mode !== undefined
  const hasUrl = isPosted(source.data)
  const known = types.data?.find((one) => one.type === type) ?? null
  return (
    <>
      <Head
        kind="sources"
        row={source.data}
        asksDisable="Refuse all its requests?"
        asksDelete="Delete it and its connections?"
      />
      <Panel title="Source">
        <Facts
          of={[
            [
              "URL",
              hasUrl ? (
                <span key="url">
                  <code>{url}</code> <Copy text={url} />
                </span>
              ) : undefined
            ],
            ["Type", known === null ? type : `${known.name} (${type})`],
            [
              "Channel",
              hasChannel ? (
                <Link key="channel" to={`/channels/${id}`}>
                  Show how its items arrive
                </Link>
              ) : undefined
            ],
            ["Next request", next_due_at === undefined ? undefined : <Time key="next" at={next_due_at} precise />],
            ...subscriptionFacts(subscription_state),
            ["Description", description ?? undefined],
            ["Id", <code key="id">{id}</code>],
            ["Created", <Time key="created" at={created_at} precise />],
            [
              "Requests",
              <Link key="requests" to="/requests" search={{ source_id: id }}>
                Show its requests
              </Link>
            ],
            [
              "Numbers",
              <Link key="numbers" to="/" search={{ source_id: id }}>
                Show its charts
              </Link>
            ],
            [
              "Try it",
              hasUrl ? (
                <code key="try">{`curl -d '{"hello":"world"}' -H 'content-type: application/json' ${url}`}</code>
              ) : undefined
            ]
          ]}
        />
      </Panel>
      {known === null ? null : <SetUp of={known} url={hasUrl && known.samples.length > 0 ? url : null} />}
      {hasUrl && types.data !== undefined && known?.samples.length !== 0 ? (
        <SendTest key={id} source={source.data} of={known} />
      ) : null}
      <TypedSettings kind="Source" stored={source.data} />
    </>
  )
}
