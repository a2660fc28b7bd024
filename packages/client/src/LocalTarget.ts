import type { Delivery } from "./Delivery.ts"

/** The result of a delivery, as it is sent to the gateway. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly body?: string
  readonly body_base64?: string
  readonly body_truncated?: true
  /** Why the app gave no answer; null if it answered. */
  readonly error: string | null
}

/** Bytes of an answer's body that are read. The gateway stores no more. */
const maxBody = 64 * 1024
const maxHeaders = 100
const maxHeaderCharacters = 16 * 1024

/** Headers that belong to the connection of the original request, and headers that `fetch` refuses. */
const dropped: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade"
])

/** The result when the app gave no answer: reported as 502 Bad Gateway. */
export const refused = (error: string): Answer => ({ status: 502, headers: {}, error })

const bytesOf = ({ body, body_base64 }: Delivery["request"]): Uint8Array<ArrayBuffer> =>
  body_base64 === undefined
    ? new TextEncoder().encode(body ?? "")
    : Uint8Array.from(atob(body_base64), (character) => character.charCodeAt(0))

/**
 * The URL of a delivery; null if its path would leave the target's path. Senders choose the path, so it must not reach other
 * parts of the app.
 */
const urlOf = (target: URL, path: string): URL | null => {
  const base = target.pathname.replace(/\/$/, "")
  const url = URL.parse(`${target.origin}${base}${path.startsWith("/") ? "" : "/"}${path}`)
  const isInside =
    url?.origin === target.origin && (base === "" || url.pathname === base || url.pathname.startsWith(`${base}/`))
  return isInside ? url : null
}

const headersOf = (given: Delivery["request"]["headers"]): Headers => {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    if (dropped.has(name.toLowerCase())) continue
    for (const one of typeof value === "string" ? [value] : value) {
      try {
        headers.append(name, one)
      } catch {
        // A header that cannot be sent is left out: the app gets the event without it.
      }
    }
  }
  return headers
}

/**
 * At most as many headers as the gateway stores. The platform has decoded the body, so `content-encoding` and `content-length`
 * are left out.
 */
const shown = (headers: Headers): Answer["headers"] => {
  // Without a prototype, because an app may send a header `__proto__`.
  const kept = Object.create(null) as Record<string, string | Array<string>>
  let characters = 0
  for (const [name, value] of headers) {
    if (name === "content-encoding" || name === "content-length" || dropped.has(name)) continue
    characters += name.length + value.length
    if (Object.keys(kept).length >= maxHeaders || characters > maxHeaderCharacters) break
    const before = kept[name]
    // Only cookies come as separate entries, because they cannot be joined.
    kept[name] = before === undefined ? value : [before, value].flat()
  }
  return kept
}

const base64 = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

/** The first bytes of a body. The rest is not read. */
const bodyOf = async (response: Response): Promise<Pick<Answer, "body" | "body_base64" | "body_truncated">> => {
  const bytes = new Uint8Array(maxBody)
  let length = 0
  let isCut = false
  const parts = (response.body ?? []) as AsyncIterable<Uint8Array>
  // Leaving the loop cancels the rest of the body.
  for await (const part of parts) {
    const room = part.subarray(0, maxBody - length)
    bytes.set(room, length)
    length += room.length
    isCut = room.length < part.length
    if (isCut) break
  }
  const read = bytes.subarray(0, length)
  const cut = isCut ? ({ body_truncated: true } as const) : {}
  try {
    // `stream`: an incomplete character at the cut is left out, and is not an error.
    return { body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(read, { stream: isCut }), ...cut }
  } catch {
    return { body_base64: base64(read), ...cut }
  }
}

/** The cause of a failure, as the operating system names it: `ECONNREFUSED …` instead of "fetch failed". */
const reasonOf = (error: unknown): string => {
  const {
    cause,
    message = "",
    name = ""
  } = error as { cause?: { code?: string; message?: string }; message?: string; name?: string }
  if (name === "TimeoutError") return "TIMEOUT the local app did not answer in time"
  const detail = [cause?.code, cause?.message].filter((part) => part !== undefined && part !== "").join(" ")
  return (detail === "" ? `${name} ${message}` : detail).slice(0, 500)
}

/** Error codes of a kept-open connection that the app has closed meanwhile. */
const broken: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

const isBroken = (error: unknown): boolean => broken.has((error as { cause?: { code?: string } }).cause?.code)

/**
 * Sends a request to the app, and sends it again if the connection broke before an answer. The usual cause is that the app closed
 * an idle connection at that moment. The app may have received the first request, too. This is allowed, because deliveries are at
 * least once.
 */
const ask = async (url: URL, init: RequestInit): Promise<Response> => {
  try {
    return await fetch(url, init)
  } catch (error) {
    if (!isBroken(error)) throw error
    return fetch(url, init)
  }
}

/** The answer of the app at `target` to a delivery. Never rejects: "no answer" is a result, too. */
export const answerOf = async (
  target: URL,
  request: Delivery["request"],
  timeoutMs: number,
  ended?: AbortSignal
): Promise<Answer> => {
  const url = urlOf(target, request.path)
  if (url === null) return refused("PATH_NOT_ALLOWED the path leads out of the local URL")
  const method = request.method.toUpperCase()
  const timeout = AbortSignal.timeout(Math.max(1, timeoutMs))
  try {
    const response = await ask(url, {
      method,
      headers: headersOf(request.headers),
      body: method === "GET" || method === "HEAD" ? null : bytesOf(request),
      // A redirect is the app's answer. The gateway decides what it means.
      redirect: "manual",
      signal: ended === undefined ? timeout : AbortSignal.any([timeout, ended])
    })
    return { status: response.status, headers: shown(response.headers), ...(await bodyOf(response)), error: null }
  } catch (error) {
    return refused(reasonOf(error))
  }
}
