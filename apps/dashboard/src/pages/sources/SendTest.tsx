import { Link } from "@tanstack/react-router"
import { useState } from "react"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { Action } from "../../parts/Action.tsx"
import { ChoiceField } from "../../parts/Form.tsx"
import { Panel } from "../../parts/Panel.tsx"
import { useSession } from "../../session.ts"
import type { SourceType } from "./SourceTypes.ts"

const call = "POST /sources/{id}/test-request"

const outcomeOf = ({ rejection_cause, status, verified }: Row<"TestRequestResult">): string => {
  if (status === "rejected") return `Rejected: ${rejection_cause}`
  return verified ? "Accepted and verified" : "Accepted; the source does not verify its senders"
}

/** Sends a sample to the source, as its provider would send it. `of`: null for a type that the gateway does not know. */
export const SendTest = ({ of, source }: { readonly source: Row<"Source">; readonly of: SourceType | null }) => {
  const { client } = useSession()
  const may = useMay()
  const samples = of?.samples ?? []
  const [sample, setSample] = useState(samples[0])
  const [sent, setSent] = useState<Row<"TestRequestResult"> | null>(null)
  if (!may(call)) return null
  const isUnsignable = of?.signs_test_requests === false && source.config.auth_type !== null
  const send = async () => {
    setSent(null)
    const body = { ...(sample === undefined ? {} : { sample }), ...(isUnsignable ? { signed: false } : {}) }
    setSent(await client.post("/sources/{id}/test-request", { params: { path: { id: source.id } }, body }))
  }
  return (
    <Panel title="Test">
      <div className="form">
        {samples.length < 2 ? null : (
          <ChoiceField
            name="test-sample"
            label="Sample"
            choices={samples.map((one) => [one, one])}
            onChoose={(chosen) => setSample(chosen)}
          />
        )}
        <p className="muted">
          {isUnsignable
            ? `Only ${of.name} can sign its requests. The test request is sent unsigned, so this source rejects it.`
            : "The request is signed with the secret of this source, and stored and routed as that of any sender."}
        </p>
        <div className="bar">
          <Action call={call} run={send} disabled={source.disabled_at !== null} primary>
            Send a test request
          </Action>
          {sent === null ? null : (
            <span role="status">
              <span className={sent.status === "accepted" ? "badge good" : "badge bad"}>{outcomeOf(sent)}</span>{" "}
              <Link to={`/requests/${sent.request_id}`}>Show the request</Link>
            </span>
          )}
        </div>
        {source.disabled_at === null ? null : (
          <p className="muted">Enable the source first: it rejects all requests.</p>
        )}
      </div>
    </Panel>
  )
}
