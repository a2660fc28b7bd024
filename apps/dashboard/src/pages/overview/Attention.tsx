import { useQuery, useQueryClient } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactElement } from "react"
import { isRefused, type Row } from "../../gateway.ts"
import { Entries, Entry } from "../../parts/Entries.tsx"
import { Issues } from "../../parts/Issues.tsx"
import { NamedLink } from "../../parts/Named.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { useSession } from "../../session.ts"
import { isTroubled, needOf } from "../ChannelNeeds.ts"
import { AlertEntry, useOpenAlerts } from "../OpenAlerts.tsx"
import { waiting } from "../Waiting.ts"
import { useCounts } from "./Counts.ts"
import { shareOf } from "./Figures.tsx"

/*
 * What needs attention, in the order in which it is shown. Each kind is a hook: it reads what it is made of, and returns its entries. A kind
 * that the caller may not read has none.
 */

interface Found {
  readonly entries: ReadonlyArray<ReactElement>
  readonly isPending: boolean
  readonly error: unknown
}

/** How many entries of one kind are shown. The lists to which they lead have all of them. */
const maxShown = 5
/** A queue with fewer events, none of which has waited for four hours, is normal. */
const manyWait = 100

const number = (count: number): string => count.toLocaleString()

const counted = (count: number, what: string): string => `${number(count)} ${what}${count === 1 ? "" : "s"}`

const worst = <Model,>(models: ReadonlyArray<Model>, of: (model: Model) => number): ReadonlyArray<Model> =>
  models
    .filter((model) => of(model) > 0)
    .toSorted((a, b) => of(b) - of(a))
    .slice(0, maxShown)

/** Entries of a kind's resources that have the most of something in 24 hours. */
const useWorst = <Model,>(
  kind: "destinations" | "workflows",
  of: (model: Model) => number,
  entry: (model: Model) => ReactElement
): Found => {
  const { data, error, isPending } = useCounts<Model>(kind)
  return { error, isPending, entries: worst(data?.models ?? [], of).map(entry) }
}

const useAlerts = (): Found => {
  const { alerts, error, isPending } = useOpenAlerts()
  const entries = alerts.slice(0, maxShown).map((one) => <AlertEntry key={one.id} of={one} />)
  const more = alerts.length - maxShown
  const all = <Link to="/alerts">Show all alerts</Link>
  if (more <= 0) return { error, isPending, entries }
  const last = (
    <Entry key="more alerts" tone="bad" action={all}>
      {counted(more, "more alert")} about channels
    </Entry>
  )
  return { error, isPending, entries: [...entries, last] }
}

/** Channels that end or have ended, before there is an alert about them, or while somebody deals with it. */
const useChannels = (): Found => {
  const { client, team } = useSession()
  const { alerts } = useOpenAlerts()
  const { data, error, isPending } = useQuery({
    queryKey: ["troubled channels", team],
    queryFn: () =>
      client.get("/sources/channels", { params: { query: { status: ["expiring", "error", "fallback"] } } }),
    retry: false,
    refetchInterval: 30_000
  })
  const alerted = new Set(alerts.map(({ source_id }) => source_id))
  const troubled = data?.models.filter(({ channel, source_id }) => isTroubled(channel) && !alerted.has(source_id)) ?? []
  return {
    error,
    isPending,
    entries: troubled.slice(0, maxShown).map(({ channel, name, source_id }) => (
      <Entry
        key={source_id}
        tone={channel.status === "error" ? "bad" : "wait"}
        action={<Link to={`/channels/${source_id}`}>Show the channel</Link>}
      >
        The channel of <bdi>{name}</bdi> {channel.status === "expiring" ? "ends soon" : "does not notify"}:{" "}
        {needOf(channel) ?? "its page says more."}
      </Entry>
    ))
  }
}

const useFailing = (): Found =>
  useWorst<Row<"DestinationMetrics">>(
    "destinations",
    ({ events_24h_failed_count }) => events_24h_failed_count,
    ({ destination_id: id, events_24h_failed_count: failed, events_24h_successful_count: delivered }) => (
      <Entry
        key={`failed ${id}`}
        tone="bad"
        action={
          <Link to="/events" search={{ destination_id: id, status: "FAILED", from: "now-24h" }}>
            See why, and retry them
          </Link>
        }
      >
        {counted(failed, "event")} to <NamedLink kind="destinations" id={id} /> failed in 24 hours:{" "}
        {shareOf(failed, failed + delivered)} of those that are finished
      </Entry>
    )
  )

/** Queues with many waiting events, or with events that have waited for hours. */
const useQueues = (): Found =>
  useWorst<Row<"DestinationMetrics">>(
    "destinations",
    ({ events_24h_pending_bins: bins, events_24h_pending_count: count }) =>
      count >= manyWait || bins.slice(0, -1).some((one) => one > 0) ? count : 0,
    ({ destination_id: id, events_24h_pending_count: count }) => (
      <Entry
        key={`waiting ${id}`}
        tone="wait"
        action={
          <Link to="/events" search={{ destination_id: id, status: waiting.name, from: "now-24h" }}>
            Show those that wait
          </Link>
        }
      >
        {counted(count, "event")} {count === 1 ? "waits" : "wait"} for <NamedLink kind="destinations" id={id} />
      </Entry>
    )
  )

/** How many of the rejected requests of these sources were of senders that could not be verified. */
const useUnverified = (ids: ReadonlyArray<string>) => {
  const { client, team } = useSession()
  return useQuery({
    queryKey: ["unverified", team, ids],
    queryFn: async () => {
      const counts = ids.map(async (id) => {
        const query = { source_id: [id], rejection_cause: ["SOURCE_AUTH_FAILED"], from: "now-24h" }
        return [id, (await client.get("/requests/count", { params: { query } })).total] as const
      })
      return new Map(await Promise.all(counts))
    },
    enabled: ids.length > 0,
    retry: false,
    refetchInterval: 30_000
  })
}

const useSenders = (): Found => {
  const { data, error, isPending } = useCounts<Row<"SourceMetrics">>("sources")
  const rejecting = worst(data?.models ?? [], ({ requests_24h_rejected_count }) => requests_24h_rejected_count)
  const unverified = useUnverified(rejecting.map(({ source_id }) => source_id)).data
  return {
    error,
    isPending,
    entries: rejecting.map(({ requests_24h_rejected_count: rejected, source_id: id }) => {
      const count = unverified?.get(id) ?? 0
      return (
        <Entry
          key={`rejected ${id}`}
          tone="bad"
          action={
            <Link
              to="/requests"
              search={{
                source_id: id,
                status: "rejected",
                from: "now-24h",
                ...(count === 0 ? {} : { rejection_cause: "SOURCE_AUTH_FAILED" })
              }}
            >
              {count === 0 ? "Show the rejected ones" : "Show the unverified ones"}
            </Link>
          }
        >
          {counted(rejected, "request")} to <NamedLink kind="sources" id={id} />{" "}
          {rejected === 1 ? "was rejected" : "were rejected"} in 24 hours
          {count === 0 ? "" : `: the senders of ${number(count)} could not be verified`}
        </Entry>
      )
    })
  }
}

const useRuns = (): Found =>
  useWorst<Row<"WorkflowMetrics">>(
    "workflows",
    ({ runs_24h_failed_count }) => runs_24h_failed_count,
    ({ runs_24h_failed_count: failed, workflow_id: id }) => (
      <Entry
        key={`runs ${id}`}
        tone="bad"
        action={
          <Link to={`/workflows/${id}`} search={{ status: "failed" }}>
            Show the failed runs
          </Link>
        }
      >
        {counted(failed, "run")} of <NamedLink kind="workflows" id={id} /> failed in 24 hours
      </Entry>
    )
  )

/** The text if no kind has an entry. It mentions only the kinds that could be read. */
const nothing = (refused: number, all: number): string => {
  if (refused === all) return "You may read none of what this is made of."
  if (refused > 0) return "Nothing of what you may read does."
  return "Nothing does: no channel, delivery, sender or run of 24 hours is in trouble."
}

/** Where a reader begins. */
export const Attention = () => {
  const found = [useAlerts(), useChannels(), useFailing(), useQueues(), useSenders(), useRuns()]
  const entries = found.flatMap((one) => one.entries)
  const failure = found.find(({ error }) => error !== null && !isRefused(error))
  const refused = found.filter(({ error }) => isRefused(error)).length
  const queries = useQueryClient()
  return (
    <Panel title="What needs attention">
      {entries.length > 0 ? (
        <Entries label="What needs attention">{entries}</Entries>
      ) : found.some(({ isPending }) => isPending) ? (
        <Loading />
      ) : failure !== undefined ? null : (
        <p className="muted">{nothing(refused, found.length)}</p>
      )}
      {failure === undefined ? null : <Failure error={failure.error} retry={() => queries.invalidateQueries()} />}
      <Issues />
    </Panel>
  )
}
