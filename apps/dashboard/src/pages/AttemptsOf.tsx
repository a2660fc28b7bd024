import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import type { Row } from "../gateway.ts"
import { Headers, Text } from "../parts/Body.tsx"
import { liveMs } from "../parts/Pages.ts"
import { Facts } from "../parts/Panel.tsx"
import { Failure, Loading } from "../parts/States.tsx"
import { Status } from "../parts/Status.tsx"
import { lengthOf, Time } from "../parts/Time.tsx"
import { useSession } from "../session.ts"

/** What was called, and what the target answered. `more`: facts that only some pages show. */
export const Answer = ({
  more,
  of: attempt
}: {
  readonly of: Row<"Attempt">
  readonly more: ReadonlyArray<readonly [label: string, value: ReactNode]>
}) => (
  <>
    <Facts
      of={[
        [
          "Called",
          <span key="url" className="mono">
            <bdi>{`${attempt.http_method} ${attempt.requested_url}`}</bdi>
          </span>
        ],
        ["Sent", <Time key="sent" at={attempt.delivered_at} precise />],
        ["Because", attempt.trigger],
        ...more,
        ["Body", attempt.body_encoding === "base64" ? "no text: its bytes are shown as Base64" : undefined]
      ]}
    />
    <Headers of={attempt.response_headers} />
    <Text text={attempt.body ?? ""} />
  </>
)

/** The attempts of an event, with the answers of its target. */
export const AttemptsOf = ({ eventId, isLive }: { readonly eventId: string; readonly isLive: boolean }) => {
  const { client, team } = useSession()
  const attempts = useQuery({
    queryKey: ["attempts", team, eventId],
    queryFn: () => client.get("/attempts", { params: { query: { event_id: [eventId], limit: 100 } } }),
    refetchInterval: isLive ? liveMs : false
  })
  if (attempts.isPending) return <Loading />
  if (attempts.isError) return <Failure error={attempts.error} retry={attempts.refetch} />
  if (attempts.data.models.length === 0) return <p className="muted">It has not been sent yet.</p>
  return attempts.data.models.map((attempt) => (
    <details key={attempt.id} open={attempts.data.models.length === 1}>
      <summary>
        Attempt {attempt.attempt_number}, <Time at={attempt.delivered_at} />: <Status of={attempt.status} />{" "}
        {attempt.error_code ?? attempt.response_status}
        {attempt.response_latency === null ? null : <> after {lengthOf(attempt.response_latency)}</>}
      </summary>
      <Answer
        of={attempt}
        more={[
          [
            "Id",
            <Link key="id" className="mono" to={`/attempts/${attempt.id}`}>
              {attempt.id}
            </Link>
          ]
        ]}
      />
    </details>
  ))
}
