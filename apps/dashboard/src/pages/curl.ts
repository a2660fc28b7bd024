import type { Row } from "../gateway.ts"

/** A longer body is sent from a file, because a terminal does not accept it on one line. */
const longestBody = 32_768

/** Headers that curl writes itself, and headers of the connection by which the request came. */
const own = new Set([
  "host",
  "content-length",
  "connection",
  "transfer-encoding",
  "accept-encoding",
  "expect",
  "keep-alive"
])

/** Credentials, which the gateway does not store. */
const masked = "[PRESENTED]"

/**
 * Whether a text is safe in a command that somebody pastes. Terminals obey control characters even in quotes: one of them ends the paste, and runs
 * the text after it.
 */
const isPlain = (text: string): boolean => !/[^\P{Cc}\n\t]/u.test(text)

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const textsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string" ? [value] : Array.isArray(value) ? value.flatMap(textsOf) : []

/**
 * A command that sends a stored request again to the URL of its source. `body` is null if it is no text. What cannot be written safely is left
 * out (headers), or is read from the file of the name (the body).
 */
export const curlOf = (
  { headers, method, path, query }: Row<"RequestData">,
  url: string,
  body: string | null,
  file: string
): string => {
  const target = `${url}${path === "/" ? "" : path}${query === "" ? "" : `?${query}`}`
  const isWritten = body !== null && body.length <= longestBody && isPlain(body)
  const sent = Object.entries(headers ?? {}).flatMap(([name, value]) =>
    own.has(name.toLowerCase())
      ? []
      : textsOf(value)
          .filter((text) => !text.includes(masked) && isPlain(text) && !text.includes("\n"))
          // An empty value is written with a semicolon: after a colon it would remove the header.
          .map((text) => (text === "" ? `${name};` : `${name}: ${text}`))
  )
  // Otherwise curl says that the body is a form.
  const isTyped = sent.some((header) => /^content-type:/i.test(header))
  return [
    `curl --globoff -X ${quoted(method)} ${quoted(target)}`,
    ...sent.map((header) => `-H ${quoted(header)}`),
    ...(body === "" || isTyped ? [] : ["-H 'content-type:'"]),
    ...(body === "" ? [] : [isWritten ? `--data-raw ${quoted(body)}` : `--data-binary ${quoted(`@${file}`)}`])
  ].join(" \\\n  ")
}
