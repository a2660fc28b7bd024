import { useMemo, useState } from "react"
import { Copy } from "./Copy.tsx"
import { Picture, pictureType } from "./Picture.tsx"
import { Tree } from "./Tree.tsx"

/** Longer texts are shown in part, so that the page stays fast. The whole text can be copied or downloaded. */
const longestShown = 200_000

/** Longer formatted texts are not made, because the indentation of deep nesting grows with the square of the input. */
const longestLaidOut = 4 * longestShown

/** A part of JSON that line breaks depend on; numbers and names of values stand between them. */
const jsonPart = /"(?:[^"\\]|\\.)*"|[{}[\],:]|\s+/g

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** JSON with line breaks. Works on the text, so that numbers keep all their digits. Null: it is no JSON, or its layout would be too long. */
export const pretty = (text: string): string | null => {
  if (!/^\s*[[{]/.test(text) || !isJson(text)) return null
  let [laidOut, depth, end] = ["", 0, 0]
  const line = () => `\n${"  ".repeat(depth)}`
  for (const { 0: token, index } of text.matchAll(jsonPart)) {
    laidOut += text.slice(end, index)
    end = index + token.length
    if (token === "{" || token === "[") {
      depth++
      const isEmpty = /^\s*[}\]]/.test(text.slice(end, end + 200))
      laidOut += isEmpty ? token : token + line()
    } else if (token === "}" || token === "]") {
      depth--
      laidOut += /[{[]\s*$/.test(text.slice(Math.max(0, index - 200), index)) ? token : line() + token
    } else if (token === ",") laidOut += `,${line()}`
    else if (token === ":") laidOut += ": "
    else if (token.startsWith('"')) laidOut += token
    if (laidOut.length > longestLaidOut) return null
  }
  return laidOut + text.slice(end)
}

/** Bytes that are shown in hexadecimal. */
const maxHex = 4_096

/** A line of the hexadecimal view: the offset, sixteen bytes, and their printable characters. */
const hexOf = (bytes: Uint8Array): string =>
  Array.from({ length: Math.ceil(Math.min(bytes.length, maxHex) / 16) }, (_, line) => {
    const part = [...bytes.subarray(line * 16, line * 16 + 16)]
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ")
    const text = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("")
    return `${(line * 16).toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${text}`
  }).join("\n")

/** Null: the bytes are no text. */
export const decoded = (bytes: Uint8Array): string | null => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes("\0") ? null : text
  } catch {
    return null
  }
}

/** The name of a file with the body of a record. */
export const downloadName = (id: string): string => `${id}.bin`

const Download = ({ bytes, name }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly name: string }) => {
  const save = () => {
    // Always as a file: the browser never opens it as a page.
    const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }))
    const link = Object.assign(document.createElement("a"), { href: url, download: downloadName(name) })
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <button type="button" className="link" onClick={save}>
      Download
    </button>
  )
}

/** A stored body: as text, or in hexadecimal if it is none, with the picture that it is. */
export const Body = ({ bytes, name }: { readonly bytes: Uint8Array<ArrayBuffer>; readonly name: string }) => {
  const text = useMemo(() => decoded(bytes), [bytes])
  const picture = pictureType(bytes)
  return (
    <>
      {text === null ? (
        <>
          {picture === null ? null : <Picture bytes={bytes} type={picture} />}
          <p className="muted">{bytes.length.toLocaleString()} bytes that are no text.</p>
          <pre className="text" tabIndex={0}>
            {hexOf(bytes)}
          </pre>
        </>
      ) : (
        <Text text={text} />
      )}
      {bytes.length === 0 ? null : <Download bytes={bytes} name={name} />}
    </>
  )
}

/** How JSON is shown. */
const views = ["Formatted", "Tree", "Raw"] as const

/** A text: laid out or as a tree if it is JSON, or as it was sent. Nothing in it is run, followed or fetched. */
export const Text = ({ text }: { readonly text: string }) => {
  const laidOut = useMemo(() => (text.length > longestShown ? null : pretty(text)), [text])
  const [chosen, setChosen] = useState<(typeof views)[number]>("Formatted")
  if (text === "") return <p className="muted">Empty.</p>
  const shown = chosen === "Raw" || laidOut === null ? text : laidOut
  return (
    <>
      <div className="tabs">
        {laidOut === null ? null : (
          <div role="tablist" aria-label="How the text is shown">
            {views.map((view) => (
              <button
                key={view}
                type="button"
                role="tab"
                aria-selected={chosen === view}
                onClick={() => setChosen(view)}
              >
                {view}
              </button>
            ))}
          </div>
        )}
        <Copy text={text} label="Copy" />
      </div>
      {chosen === "Tree" && laidOut !== null ? (
        <Tree text={text} />
      ) : (
        <pre className="text" tabIndex={0}>
          <bdi>{shown.slice(0, longestShown)}</bdi>
        </pre>
      )}
      {shown.length > longestShown ? (
        <p className="muted">
          The first {longestShown.toLocaleString()} of {shown.length.toLocaleString()} characters are shown.
        </p>
      ) : null}
    </>
  )
}

/** The most headers that are shown at once. */
const maxHeaders = 200

export const Headers = ({ of }: { readonly of: Readonly<Record<string, unknown>> | null }) => {
  const all = Object.entries(of ?? {})
  if (all.length === 0) return <p className="muted">There are no headers.</p>
  return (
    <>
      <table>
        <tbody>
          {all.slice(0, maxHeaders).map(([name, value]) => (
            <tr key={name}>
              <th scope="row" className="mono">
                {name}
              </th>
              <td className="mono">
                <bdi>{typeof value === "string" ? value : JSON.stringify(value)}</bdi>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {all.length > maxHeaders ? (
        <p className="muted">
          {maxHeaders} of {all.length} headers are shown.
        </p>
      ) : null}
    </>
  )
}
