import { useMutation } from "@tanstack/react-query"
import { use, useState } from "react"
import type { Row } from "../../gateway.ts"
import { useMay } from "../../may.ts"
import { faultsOf, noFaults, ShowFaults } from "../../parts/Faults.tsx"
import { TextArea, textOf } from "../../parts/Form.tsx"
import { Facts, Panel } from "../../parts/Panel.tsx"
import { useSession } from "../../session.ts"

/** The value of the sample: JSON, or otherwise a text. */
const requestOf = (form: HTMLFormElement): object => {
  const text = textOf(form, "sample")
  return text === "" ? {} : { request: { body: text } }
}

/** The field of a member of the call: the form has the destination's own names. */
const fieldOfTest = (path: string): string =>
  /^request(?:\.|$)/.test(path) ? "sample" : path.replace(/^destination\./, "")

/** A button in the form of a destination that makes a test delivery with what is written there, and shows its result beside it. A refusal is shown at its field. */
export const TryDestination = ({ bodyOf }: { readonly bodyOf: (form: HTMLFormElement) => object }) => {
  const { client } = useSession()
  const may = useMay()
  const showFaults = use(ShowFaults)
  const [others, setOthers] = useState(noFaults.others)
  const test = useMutation({
    mutationFn: (form: HTMLFormElement) =>
      client.post("/destinations/test", { body: { ...bodyOf(form), ...requestOf(form) } as never }),
    onMutate: () => {
      showFaults(noFaults)
      setOthers(noFaults.others)
    },
    onError: (error, form) => {
      const found = faultsOf(error, form, fieldOfTest)
      showFaults({ ...found, others: noFaults.others })
      setOthers(found.others)
    }
  })
  if (!may("POST /destinations/test")) return null
  return (
    <Panel title="Test delivery">
      <div className="stack">
        <TextArea
          name="sample"
          label="Body to send"
          rows={3}
          help="The target really gets it, with the settings above. Nothing is stored. Empty: a short message in JSON."
        />
        <div className="bar">
          <button
            type="button"
            disabled={test.isPending}
            onClick={({ currentTarget: { form } }) => {
              if (form?.reportValidity() === true) test.mutate(form)
            }}
          >
            Try it
          </button>
        </div>
        {others.length === 0 ? null : (
          <p role="alert" className="notice bad">
            {others.join("; ")}
          </p>
        )}
        {test.data === undefined || test.isError ? null : <Result of={test.data} />}
      </div>
    </Panel>
  )
}

const Result = ({ of }: { readonly of: Row<"DestinationTest"> }) => (
  <div role="status" aria-label="Result of the test delivery">
    <span className={`badge ${of.successful ? "good" : "bad"}`}>{of.successful ? "Delivered" : "Failed"}</span>
    <Facts
      of={[
        ["Why", of.error_message === null ? undefined : `${of.error_message} (${of.error_code ?? ""})`],
        ["Status", of.response_status ?? undefined],
        ["Took", `${of.duration_ms.toLocaleString()} ms`],
        [
          "Called",
          <code key="called">
            {of.http_method} {of.requested_url}
          </code>
        ],
        [
          "Response",
          of.body === null ? undefined : (
            <pre key="response" className="text" tabIndex={0}>
              <bdi>{of.body_encoding === "text" ? of.body : `(base64) ${of.body}`}</bdi>
            </pre>
          )
        ]
      ]}
    />
  </div>
)
