import { useQuery } from "@tanstack/react-query"
import { Link, useParams } from "@tanstack/react-router"
import type { Row } from "../../gateway.ts"
import { Action } from "../../parts/Action.tsx"
import { useFilters } from "../../parts/Filters.tsx"
import { OnlyOwners } from "../../parts/OnlyOwners.tsx"
import { Failure, Loading } from "../../parts/States.tsx"
import { exact as exactTime } from "../../parts/Time.tsx"
import { useSession } from "../../session.ts"
import { Comparison, graphOf } from "./Comparison.tsx"

type Version = Row<"WorkflowVersion">

/** How many versions are offered, the newest first. */
const maxOffered = 100

const ChooseVersion = ({
  label,
  name,
  value,
  versions
}: {
  readonly label: string
  readonly name: string
  readonly value: string
  readonly versions: ReadonlyArray<Version>
}) => {
  const { set } = useFilters()
  return (
    <div className="field">
      <label htmlFor={name}>{label}</label>
      <select id={name} value={value} onChange={({ target }) => set(name, target.value)}>
        {versions.map(({ created_at, is_current, version }) => (
          <option key={version} value={version}>
            {version}
            {is_current ? " (current)" : ""}, {exactTime(Date.parse(created_at))}
          </option>
        ))}
        {versions.some(({ version }) => String(version) === value) ? null : <option>{value}</option>}
      </select>
    </div>
  )
}

/** Two chosen versions. The current one says which version the reader has seen when an earlier one is restored. */
const Compared = ({
  after,
  before,
  current,
  id
}: {
  readonly id: string
  readonly before: string
  readonly after: string
  readonly current: number
}) => {
  const { client, team } = useSession()
  const read = useQuery({
    queryKey: ["versions compared", team, id, before, after],
    queryFn: async () => {
      const versionOf = (version: string) =>
        client.get("/workflows/{id}/versions/{version}", { params: { path: { id, version } } })
      const changes = client.get("/workflows/{id}/versions/{version}/compare", {
        params: { path: { id, version: before }, query: { with: after } }
      })
      return Promise.all([versionOf(before), versionOf(after), changes])
    }
  })
  if (read.isPending) return <Loading />
  if (read.isError) return <Failure error={read.error} retry={read.refetch} />
  const [old, next, changes] = read.data
  const sideOf = (version: (typeof read.data)[0]) => ({
    title: `Version ${version.version}`,
    ...graphOf(version),
    right:
      version.version === current ? undefined : (
        <Action
          call="POST /workflows/{id}/versions/{version}/restore"
          asks={`Make it version ${current + 1}?`}
          done={`Version ${version.version} is restored as version ${current + 1}`}
          run={() =>
            client.post("/workflows/{id}/versions/{version}/restore", {
              params: { path: { id, version: String(version.version) } },
              body: { version: current }
            })
          }
        >
          Roll back to it
        </Action>
      )
  })
  return <Comparison before={sideOf(old)} after={sideOf(next)} changes={changes} />
}

/** The versions of a workflow: two of them side by side, and the way back to an earlier one. */
export const Versions = () => {
  const { id = "" } = useParams({ strict: false })
  const { client, team } = useSession()
  const { search } = useFilters()
  const read = useQuery({
    queryKey: ["versions", team, id],
    queryFn: () =>
      Promise.all([
        client.get("/workflows/{id}", { params: { path: { id } } }),
        client.get("/workflows/{id}/versions", { params: { path: { id }, query: { limit: maxOffered } } })
      ])
  })
  if (read.isPending) return <Loading />
  if (read.isError) return <Failure error={read.error} retry={read.refetch} />
  const [{ name, version: current }, { has_more, models }] = read.data
  const last = models[1] ?? models[0]
  const before = search["before"] ?? String(last?.version ?? current)
  const after = search["after"] ?? String(current)
  return (
    <>
      <header>
        <h1>
          Versions of <bdi>{name}</bdi>
        </h1>
        <div className="actions">
          <Link to={`/workflows/${id}`} className="button">
            Back
          </Link>
        </div>
      </header>
      <OnlyOwners may="roll a workflow back" />
      <div className="bar">
        <ChooseVersion name="before" label="From version" value={before} versions={models} />
        <ChooseVersion name="after" label="To version" value={after} versions={models} />
      </div>
      <p className="muted">
        Rolling back makes a new version with the steps, edges and run label of an earlier one. Name, status, source and
        triggers stay.{has_more ? ` The newest ${maxOffered} versions are offered.` : null}
      </p>
      <Compared id={id} before={before} after={after} current={current} />
    </>
  )
}
