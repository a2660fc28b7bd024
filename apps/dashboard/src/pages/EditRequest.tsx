import { useQuery } from "@tanstack/react-query"
import { Link } from "@tanstack/react-router"
import { useDeferredValue, useMemo, useState } from "react"
import { messageOf, type Row } from "../gateway.ts"
import { decoded, pretty } from "../parts/Body.tsx"
import { Diff } from "../parts/Diff.tsx"
import { ChoiceField, Form, TextArea, TextField, textIn } from "../parts/Form.tsx"
import { headerLines, headersIn } from "../parts/HeaderLines.ts"
import { Panel } from "../parts/Panel.tsx"
import { useRefresh, useSession } from "../session.ts"

/** Longer bodies are sent on as they are: a field with more text is slow. */
const longestEdited = 200_000

const methods = ["GET", "QUERY", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"] as const

/** A request as the fields show it. */
interface Written {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: string
  /** Null: it cannot be edited. */
  readonly body: string | null
}

/** The header names whose values differ, with their new values; null: the header is removed. */
const editedHeaders = (before: string, after: string) => {
  const [old, next] = [headersIn(before), headersIn(after)]
  const isSame = (name: string) => JSON.stringify(old[name]) === JSON.stringify(next[name])
  const names = [...new Set([...Object.keys(old), ...Object.keys(next)])].filter((name) => !isSame(name))
  return Object.fromEntries(names.map((name) => [name, next[name] ?? null]))
}

/** Only what the reader has changed: everything else stays as it came, with credentials that the page does not show. */
const editsOf = (before: Written, after: Written) => {
  const headers = editedHeaders(before.headers, after.headers)
  return {
    ...(after.method === before.method ? {} : { method: after.method as (typeof methods)[number] }),
    ...(after.path === before.path ? {} : { path: after.path }),
    ...(after.query === before.query ? {} : { query: after.query }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(after.body === before.body || after.body === null ? {} : { body: after.body })
  }
}

/** Both bodies as texts. JSON is formatted, unless they differ only in formatting. */
const textsOf = (before: Written, after: Written): readonly [string, string] => {
  const laidOut = [pretty(before.body ?? ""), pretty(after.body ?? "")] as const
  const isLaidOut = laidOut[0] !== null && laidOut[1] !== null && laidOut[0] !== laidOut[1]
  const textOf = ({ body, headers, method, path, query }: Written, shown: string | null) =>
    `${method} ${path}${query === "" ? "" : `?${query}`}\n${headers}\n\n${(isLaidOut ? shown : body) ?? ""}`
  return [textOf(before, laidOut[0]), textOf(after, laidOut[1])]
}

const Changes = ({ after, before }: { readonly before: Written; readonly after: Written }) => {
  const written = useDeferredValue(after)
  const [old, next] = useMemo(() => textsOf(before, written), [before, written])
  return (
    <div>
      <h3>What changes</h3>
      <Diff label="What changes" before={old} after={next} />
    </div>
  )
}

/** Sends a request once more, with another method, path, query, headers or body. What differs is shown before. */
export const EditRequest = ({
  bytes,
  request: { data, id, source_id }
}: {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly request: Pick<Row<"Request">, "data" | "id" | "source_id">
}) => {
  const { client, team } = useSession()
  const refresh = useRefresh()
  const [sent, setSent] = useState<string | null>(null)
  const original = useMemo((): Written => {
    const text = bytes.length > longestEdited ? null : decoded(bytes)
    return {
      method: data?.method ?? "POST",
      path: data?.path ?? "/",
      query: data?.query ?? "",
      headers: headerLines(data?.headers ?? {}),
      // A field of a page has no other line breaks.
      body: text?.replaceAll(/\r\n?/g, "\n") ?? null
    }
  }, [bytes, data])
  const [written, setWritten] = useState(original)
  const write = (name: keyof Written) => (value: string) => setWritten((now) => ({ ...now, [name]: value }))
  const connections = useQuery({
    queryKey: ["connections of", team, source_id],
    queryFn: () => client.get("/connections", { params: { query: { source_id: [source_id], limit: 255 } } })
  })
  const laidOut = written.body === null ? null : pretty(written.body)
  return (
    <Panel title="Edit this request and send it">
      <p className="muted">
        It becomes a new request of the source, by the current rules, and counts as not verified. What you do not change
        stays as it came: a credential that is masked here is sent on.
      </p>
      <Form
        call="POST /requests/{id}/retry"
        label="Send it"
        send={async (form) => {
          const connection = textIn(form, "connection_ids")
          const body = {
            ...editsOf(original, written),
            ...(connection === "" ? {} : { connection_ids: [connection] })
          }
          if (Object.keys(body).length === 0) throw new Error("Nothing was changed. Replay sends it as it is.")
          setSent(null)
          const { replay_request_id } = await client.post("/requests/{id}/retry", { params: { path: { id } }, body })
          await refresh()
          setSent(replay_request_id)
        }}
      >
        <div className="bar">
          <ChoiceField
            name="method"
            label="Method"
            choices={[...new Set<string>([...methods, original.method])].map((one) => [one, one] as const)}
            defaultValue={written.method}
            onChoose={write("method")}
          />
          <TextField name="path" label="Path" defaultValue={original.path} change={write("path")} />
          <TextField name="query" label="Query" defaultValue={original.query} change={write("query")} />
        </div>
        <TextArea
          name="headers"
          label="Headers"
          rows={Math.min(12, original.headers.split("\n").length + 1)}
          value={written.headers}
          change={write("headers")}
          help="One in each line. Remove a line to remove the header."
        />
        {written.body === null ? (
          <p className="muted">The body is no text, or it is large: it is sent as it is.</p>
        ) : (
          <>
            <TextArea name="body" label="Body" rows={10} value={written.body} change={write("body")} />
            {laidOut === null || laidOut === written.body ? null : (
              <div>
                <button type="button" onClick={() => write("body")(laidOut)}>
                  Lay out the JSON
                </button>
              </div>
            )}
          </>
        )}
        <ChoiceField
          name="connection_ids"
          label="Send it to"
          choices={[
            ["", "All connections of the source"],
            ...(connections.data?.models ?? []).map(({ id, name }) => [id, name] as const)
          ]}
          help={connections.isError ? messageOf(connections.error) : undefined}
        />
        <Changes before={original} after={written} />
      </Form>
      {sent === null ? null : (
        <p role="status">
          It was sent as the request{" "}
          <Link to={`/requests/${sent}`} className="mono">
            {sent}
          </Link>
          .
        </p>
      )}
    </Panel>
  )
}
