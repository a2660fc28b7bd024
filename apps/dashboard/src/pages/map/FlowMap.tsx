import { keepPreviousData, useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useMemo } from "react"
import type { Row } from "../../gateway.ts"
import { Empty, Failure, Loading } from "../../parts/States.tsx"
import { useSession } from "../../session.ts"
import { type Layout, layoutOf, nodeHeight, nodeWidth } from "./Layout.ts"

type Rate = Row<"RateList">["models"][number]

/** Rates are read this often (ms), and not while the page is in the background. */
const liveMs = 5_000
/** Resources of a kind that are drawn, and ids in one call. */
const maxDrawn = 200
const maxIds = 100

const inParts = (ids: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> =>
  Array.from({ length: Math.ceil(ids.length / maxIds) }, (_, part) => ids.slice(part * maxIds, (part + 1) * maxIds))

interface Flow {
  /** Records a second: requests for a source, events for a connection or destination. */
  readonly perSecond: number
  readonly failed: number
}

const idle: Flow = { perSecond: 0, failed: 0 }

/** A rate in words: by the second if there is at least one, else by the minute. */
const rateOf = (perSecond: number, what: string): string =>
  perSecond === 0
    ? "idle"
    : perSecond >= 1
      ? `${perSecond.toFixed(1)} ${what}/s`
      : `${(perSecond * 60).toFixed(perSecond * 60 < 10 ? 1 : 0)} ${what}/min`

const useTopology = () => {
  const { client, team } = useSession()
  return useQuery({
    queryKey: ["map", team],
    queryFn: async () => {
      const query = { limit: maxDrawn, include_disabled: true }
      const [sources, connections, destinations] = await Promise.all([
        client.get("/sources", { params: { query } }),
        client.get("/connections", { params: { query } }),
        client.get("/destinations", { params: { query } })
      ])
      return {
        sources: sources.models,
        connections: connections.models,
        destinations: destinations.models,
        hasMore: sources.has_more || connections.has_more || destinations.has_more
      }
    },
    refetchInterval: 60_000
  })
}

/** How much goes through each resource now. */
const useFlows = (sources: ReadonlyArray<string>, others: ReadonlyArray<string>): ReadonlyMap<string, Flow> => {
  const { client, team } = useSession()
  const ids = [...sources, ...others]
  const { data } = useQuery({
    queryKey: ["rates", team, ids],
    queryFn: async () => {
      const parts = await Promise.all(
        inParts(ids).map((some) => client.get("/metrics/rates", { params: { query: { id: [...some] } } }))
      )
      const isSource = new Set(sources)
      const flowOf = ({ date_range }: Row<"RateList">, one: Rate): Flow => {
        const seconds = Math.max(1, (Date.parse(date_range.end) - Date.parse(date_range.start)) / 1_000)
        const count = isSource.has(one.id) ? one.requests_count : one.events_count
        return { perSecond: count / seconds, failed: one.failed_count }
      }
      return new Map(parts.flatMap((part) => part.models.map((one) => [one.id, flowOf(part, one)] as const)))
    },
    enabled: ids.length > 0,
    refetchInterval: liveMs,
    placeholderData: keepPreviousData
  })
  return data ?? new Map()
}

interface Node {
  readonly id: string
  readonly name: string
  readonly disabled_at: string | null
  readonly paused_at?: string | null
}

const stateOf = ({ disabled_at, paused_at }: Node): string | null =>
  disabled_at !== null ? "disabled" : (paused_at ?? null) === null ? null : "paused"

const kinds = { sources: "requests", connections: "events", destinations: "events" } as const

const Box = ({
  flow,
  kind,
  layout,
  node
}: {
  readonly node: Node
  readonly kind: keyof typeof kinds
  readonly flow: Flow
  readonly layout: Layout
}) => {
  const { x, y } = layout.places.get(node.id)!
  const said = [stateOf(node), rateOf(flow.perSecond, kinds[kind]), flow.failed > 0 ? `${flow.failed} failed` : null]
  const tone = flow.failed > 0 ? "bad" : stateOf(node) === null ? "" : "wait"
  return (
    <Link
      to={`/${kind}/${node.id}`}
      className={`box ${tone}`}
      style={{ left: x, top: y, width: nodeWidth, height: nodeHeight }}
      title={node.name}
    >
      <bdi>{node.name}</bdi>
      <span className="muted">{said.filter((part) => part !== null).join(" · ")}</span>
    </Link>
  )
}

/** A line from the right side of a box to the left side of another one: the more goes through, the wider. */
const Line = ({
  flow,
  from,
  isOff,
  layout,
  to
}: {
  readonly layout: Layout
  readonly from: string
  readonly to: string
  readonly flow: Flow
  readonly isOff: boolean
}) => {
  const a = layout.places.get(from)
  const b = layout.places.get(to)
  if (a === undefined || b === undefined) return null
  const [begin, end] = [a.x + nodeWidth, b.x]
  const [up, down] = [a.y + nodeHeight / 2, b.y + nodeHeight / 2]
  const middle = (begin + end) / 2
  const width = Math.min(10, 1.5 + Math.log2(1 + flow.perSecond * 60) * 0.7)
  return (
    <path
      className={`flow ${flow.perSecond > 0 ? "moves" : ""} ${flow.failed > 0 ? "bad" : ""} ${isOff ? "off" : ""}`}
      d={`M ${begin} ${up} C ${middle} ${up}, ${middle} ${down}, ${end} ${down}`}
      strokeWidth={width}
    />
  )
}

const noIds: ReadonlyArray<string> = []

/** All sources, connections and destinations of the team, and how much goes through them now. */
export const FlowMap = () => {
  const topology = useTopology()
  const { data } = topology
  const { layout, others, sourceIds } = useMemo(() => {
    if (data === undefined) return { layout: layoutOf([], [], []), sourceIds: noIds, others: noIds }
    const sourceIds = data.sources.map(({ id }) => id)
    const destinationIds = data.destinations.map(({ id }) => id)
    return {
      layout: layoutOf(sourceIds, data.connections, destinationIds),
      sourceIds,
      others: [...data.connections.map(({ id }) => id), ...destinationIds]
    }
  }, [data])
  const flows = useFlows(sourceIds, others)
  if (topology.isPending) return <Loading />
  if (topology.isError) return <Failure error={topology.error} retry={topology.refetch} />
  const { connections, destinations, hasMore, sources } = topology.data
  const flowOf = (id: string): Flow => flows.get(id) ?? idle
  const isEmpty = sources.length + destinations.length === 0
  return (
    <>
      <header>
        <h1>Map</h1>
        <p className="muted">Rates of the last five minutes, read every five seconds.</p>
      </header>
      {hasMore ? (
        <p className="notice">The first {maxDrawn} sources, connections and destinations are drawn: there are more.</p>
      ) : null}
      {isEmpty ? (
        <Empty>
          <p>There is nothing to draw yet.</p>
          <p>
            Create a <Link to="/sources/new">source</Link>, a <Link to="/destinations/new">destination</Link>, and a{" "}
            <Link to="/connections/new">connection</Link> between them.
          </p>
        </Empty>
      ) : (
        <div className="map" role="region" aria-label="Map" tabIndex={0}>
          <div className="map-heads muted" style={{ width: layout.width }}>
            <h2>Sources</h2>
            <h2>Connections</h2>
            <h2>Destinations</h2>
          </div>
          <div className="map-ground" style={{ width: layout.width, height: layout.height }}>
            <svg width={layout.width} height={layout.height} aria-hidden>
              {connections.map((connection) => {
                const { destination_id, id, source_id } = connection
                const flow = flowOf(id)
                const isOff = stateOf(connection) !== null
                return (
                  <g key={id}>
                    <Line layout={layout} from={source_id} to={id} flow={flow} isOff={isOff} />
                    <Line layout={layout} from={id} to={destination_id} flow={flow} isOff={isOff} />
                  </g>
                )
              })}
            </svg>
            {sources.map((node) => (
              <Box key={node.id} kind="sources" node={node} flow={flowOf(node.id)} layout={layout} />
            ))}
            {connections.map((node) => (
              <Box key={node.id} kind="connections" node={node} flow={flowOf(node.id)} layout={layout} />
            ))}
            {destinations.map((node) => (
              <Box key={node.id} kind="destinations" node={node} flow={flowOf(node.id)} layout={layout} />
            ))}
          </div>
        </div>
      )}
    </>
  )
}
