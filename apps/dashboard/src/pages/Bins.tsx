import { useQuery, useQueryClient } from "@tanstack/react-query"
import { Link, useNavigate, useParams } from "@tanstack/react-router"
import { useEffect, useState } from "react"
import { messageOf, type Row, streamBin } from "../gateway.ts"
import { Action } from "../parts/Action.tsx"
import { Copy } from "../parts/Copy.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Snapshot } from "../parts/Snapshot.tsx"
import { Empty, Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Rows } from "../parts/Table.tsx"
import { Time } from "../parts/Time.tsx"
import { useIsVisible } from "../parts/Visible.ts"
import { useSession } from "../session.ts"
import { type Bin as Kept, forgetBin, keepBin, keptBins } from "./bins.ts"

type Captured = Row<"CapturedRequest">
type Content = Row<"PublicBin">

/** Requests that a bin shows, the newest first. */
const maxShown = 100

export const Bins = () => {
  const { client } = useSession()
  const navigate = useNavigate()
  const [bins, setBins] = useState(keptBins)
  return (
    <>
      <header>
        <h1>Bins</h1>
        <div className="actions">
          <Action
            call="POST /public-bins"
            primary
            run={async () => {
              const bin = await client.post("/public-bins")
              keepBin(bin)
              await navigate({ to: `/bins/${bin.id}` })
            }}
          >
            New bin
          </Action>
        </div>
      </header>
      <p className="muted">
        A bin is a URL that takes any request for an hour, so that you can look at it. Anybody who knows the URL can
        send to it. Only this browser can read it, and you can keep it as a source of the team.
      </p>
      {bins.length === 0 ? (
        <Empty>
          <p>This browser has no bin. Make one, and send something to its URL.</p>
        </Empty>
      ) : (
        <Rows label="Bins" columns={["URL", "Ends", ""]}>
          {bins.map(({ endpoint, expires_at, id }) => (
            <tr key={id}>
              <td>
                <Link to={`/bins/${id}`} className="mono">
                  {endpoint}
                </Link>
              </td>
              <td>
                <Time at={expires_at} />
              </td>
              <td>
                <Action
                  call={null}
                  asks="Nobody can read it then. Forget it?"
                  run={async () => {
                    forgetBin(id)
                    setBins(keptBins())
                  }}
                >
                  Forget
                </Action>
              </td>
            </tr>
          ))}
        </Rows>
      )}
    </>
  )
}

const Arrived = ({ of }: { readonly of: Captured }) => {
  const [isOpen, setOpen] = useState(false)
  const { created_at, data, id, status } = of
  return (
    <details className="panel" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Status of={status} /> <Time at={created_at} />{" "}
        <bdi className="mono">
          {data === null ? id : `${data.method} ${data.path}${data.query === "" ? "" : `?${data.query}`}`}
        </bdi>
      </summary>
      <div className="inside">
        {!isOpen ? null : data === null ? (
          <p className="muted">It was refused before it was read.</p>
        ) : (
          <Snapshot of={data} name={id} />
        )}
      </div>
    </details>
  )
}

/** With one more request, the newest first. The list and the stream may both have it. */
const withRequest = (content: Content | undefined, request: Captured): Content | undefined =>
  content === undefined || content.requests.some(({ id }) => id === request.id)
    ? content
    : { ...content, requests: [request, ...content.requests].slice(0, maxShown) }

const Live = ({ bin }: { readonly bin: Kept }) => {
  const { client } = useSession()
  const navigate = useNavigate()
  const queries = useQueryClient()
  const isVisible = useIsVisible()
  const [isLive, setLive] = useState(false)
  /** Why the stream has ended for good. */
  const [end, setEnd] = useState<string | null>(null)
  const header = { "x-bin-token": bin.token }
  const content = useQuery({
    queryKey: ["bin", bin.id],
    queryFn: () =>
      client.get("/public-bins/{id}", {
        params: { path: { id: bin.id }, header, query: { limit: maxShown } }
      })
  })
  useEffect(() => {
    if (!isVisible) return undefined
    const ending = new AbortController()
    const queryKey = ["bin", bin.id]
    streamBin(bin, {
      signal: ending.signal,
      onRequest: (request) => queries.setQueryData<Content>(queryKey, (content) => withRequest(content, request)),
      onSkipped: () => void queries.invalidateQueries({ queryKey }),
      onChange: ({ type }) => {
        setLive(type === "connected")
        // Requests that came before the stream was open are only in the list.
        if (type === "connected") void queries.invalidateQueries({ queryKey })
      }
    }).catch((error) => setEnd(messageOf(error)))
    return () => ending.abort()
  }, [bin, isVisible, queries])
  return (
    <>
      <header>
        <h1>Bin</h1>
        <span className={`badge ${end !== null ? "bad" : isLive ? "good" : "wait"}`} role="status">
          {end !== null ? "Ended" : isLive ? "Live" : "Connecting…"}
        </span>
        <div className="actions">
          <Action
            call="POST /public-bins/{id}/claim"
            asks="Make it a source of the team?"
            run={async () => {
              await client.post("/public-bins/{id}/claim", { params: { path: { id: bin.id }, header } })
              forgetBin(bin.id)
              await navigate({ to: `/sources/${bin.id}` })
            }}
          >
            Keep it
          </Action>
          <Action
            call={null}
            asks="Nobody can read it then. Forget it?"
            run={async () => {
              forgetBin(bin.id)
              await navigate({ to: "/bins" })
            }}
          >
            Forget
          </Action>
        </div>
      </header>
      {end === null ? null : <div className="notice bad">{end}</div>}
      <Panel title="Send to it">
        <Facts
          of={[
            [
              "URL",
              <span key="url">
                <code>{bin.endpoint}</code> <Copy text={bin.endpoint} />
              </span>
            ],
            [
              "Try it",
              <code key="try">{`curl -d '{"hello":"bin"}' -H 'content-type: application/json' ${bin.endpoint}`}</code>
            ],
            ["Ends", <Time key="ends" at={bin.expires_at} precise />]
          ]}
        />
      </Panel>
      {content.isPending ? (
        <Loading />
      ) : content.data === undefined ? (
        <Failure error={content.error} retry={content.refetch} />
      ) : content.data.requests.length === 0 ? (
        <Empty>
          <p>Nothing has arrived yet. A request is shown here as soon as it arrives.</p>
        </Empty>
      ) : (
        <section className="stack" aria-label="Requests">
          {content.data.requests.map((request) => (
            <Arrived key={request.id} of={request} />
          ))}
          {content.data.requests.length < maxShown ? null : (
            <p className="muted">The newest {maxShown} are shown. Keep the bin to see all of them.</p>
          )}
        </section>
      )}
    </>
  )
}

export const Bin = () => {
  const { id = "" } = useParams({ strict: false })
  const [bin] = useState(() => keptBins().find((one) => one.id === id))
  if (bin !== undefined) return <Live key={id} bin={bin} />
  return (
    <>
      <header>
        <h1>Bin</h1>
      </header>
      <p className="notice">
        This browser cannot read the bin: it was made elsewhere, has ended, or was kept as a source. Go to the{" "}
        <Link to="/bins">bins</Link> or the <Link to="/sources">sources</Link>.
      </p>
    </>
  )
}
