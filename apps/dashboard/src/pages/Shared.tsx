import { useQuery } from "@tanstack/react-query"
import { gateway } from "../gateway.ts"
import { Headers, Text } from "../parts/Body.tsx"
import { Facts, Panel } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { Time } from "../parts/Time.tsx"

/** A shared request, for anybody who has the link. */
export const Shared = ({ token }: { readonly token: string }) => {
  const share = useQuery({
    queryKey: ["shared", token],
    queryFn: () => gateway().get("/shares/request/{token}", { params: { path: { token } } }),
    // Each reading is counted as one.
    retry: false,
    refetchOnWindowFocus: false,
    staleTime: Infinity
  })
  if (share.isPending) return <Loading />
  if (share.isError) {
    return (
      <main className="alone">
        <h1>Shared request</h1>
        <Failure error={share.error} />
        <p>The link is wrong, or its share has ended. Ask whoever sent it to you for another one.</p>
      </main>
    )
  }
  const { expires_at, request, title } = share.data
  const { body, body_truncated, created_at, headers, id, method, path, query, status, verified } = request
  const parameters = Object.keys(query).length === 0 ? undefined : <bdi className="mono">{JSON.stringify(query)}</bdi>
  return (
    <main className="alone">
      <h1>
        <bdi>{title ?? "Shared request"}</bdi>
      </h1>
      <p className="muted">A request that somebody has shared with you, without its secrets.</p>
      <Panel title="Request" right={<Status of={status} />}>
        <Facts
          of={[
            ["Method", method],
            [
              "Path",
              <bdi key="path" className="mono">
                {path}
              </bdi>
            ],
            ["Query", parameters],
            ["Received", <Time key="received" at={created_at} precise />],
            ["Verified", verified ? "Yes" : "No"],
            ["Id", <code key="id">{id}</code>],
            ["The link ends", <Time key="ends" at={expires_at} precise />]
          ]}
        />
      </Panel>
      <Panel title="Headers">
        <Headers of={headers} />
      </Panel>
      <Panel title="Body">
        {body === null || body === undefined ? (
          <p className="muted">{body_truncated ? "The body is not shown." : "It has no body, or it was left out."}</p>
        ) : (
          <>
            <Text text={typeof body === "string" ? body : JSON.stringify(body)} />
            {body_truncated ? <p className="muted">The body is longer: only its beginning is shown.</p> : null}
          </>
        )}
      </Panel>
    </main>
  )
}
