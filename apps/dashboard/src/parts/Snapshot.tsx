import { useMemo } from "react"
import type { Row } from "../gateway.ts"
import { Body, Headers, Text } from "./Body.tsx"
import { Facts } from "./Panel.tsx"

const bytesIn = (base64: string): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))

const Content = ({ name, of: { body, encoding, is_large_payload } }: Props) => {
  const bytes = useMemo(
    () => (encoding === "base64" && typeof body === "string" ? bytesIn(body) : null),
    [body, encoding]
  )
  if (is_large_payload) return <p className="muted">The body is too large to be shown here.</p>
  if (bytes !== null) return <Body bytes={bytes} name={name} />
  return <Text text={encoding === "json" ? JSON.stringify(body) : typeof body === "string" ? body : ""} />
}

interface Props {
  readonly of: Row<"RequestData">
  /** The name of a downloaded body. */
  readonly name: string
}

/** A request as the gateway keeps it, read by a client that keeps the digits of its numbers. */
export const Snapshot = ({ name, of }: Props) => (
  <div className="stack">
    <Facts
      of={[
        ["Method", of.method],
        [
          "Path",
          <bdi key="path" className="mono">
            {of.path}
          </bdi>
        ],
        ["Query", of.query === "" ? undefined : <bdi className="mono">{of.query}</bdi>],
        ["Size", `${of.size_bytes.toLocaleString()} bytes`],
        ["Content type", of.content_type === null ? undefined : <bdi>{of.content_type}</bdi>]
      ]}
    />
    <h3>Headers</h3>
    <Headers of={of.headers} />
    <h3>Body</h3>
    <Content name={name} of={of} />
  </div>
)
