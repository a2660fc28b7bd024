import type { Delivery } from "./Tunnel.ts"

/** What the gateway is told of a delivery. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
  readonly body?: string
  readonly body_base64?: string
  readonly body_truncated?: true
  /** Why the app gave no answer; null when it did. */
  readonly error: string | null
}

/** What is read of an answer's body: the gateway keeps no more. */
const maxBody = 64 * 1024
const maxHeaders = 100
const maxHeaderCharacters = 16 * 1024

/** Of the connection that the request came by, not of the one that is made; and what `fetch` refuses to be told. */
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

/** No answer of the app: reported as a bad gateway's. */
export const refused = (error: string): Answer => ({ status: 502, headers: {}, error })

const bytesOf = ({ body, body_base64 }: Delivery["request"]): Uint8Array<ArrayBuffer> =>
  body_base64 === undefined
    ? new TextEncoder().encode(body ?? "")
    : Uint8Array.from(atob(body_base64), (character) => character.charCodeAt(0))

/** Null where the path would lead out of the target's: what senders put into it is theirs to choose. */
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
        // A header that cannot be sent is no reason to keep the event from the app.
      }
    }
  }
  return headers
}

/** As many as the gateway keeps. What the platform has decoded is not announced as encoded. */
const shown = (headers: Headers): Answer["headers"] => {
  // Without a prototype: an app may call a header `__proto__`.
  const kept = Object.create(null) as Record<string, string | Array<string>>
  let characters = 0
  for (const [name, value] of headers) {
    if (name === "content-encoding" || name === "content-length" || dropped.has(name)) continue
    characters += name.length + value.length
    if (Object.keys(kept).length >= maxHeaders || characters > maxHeaderCharacters) break
    const before = kept[name]
    // Cookies alone come one by one: they cannot be joined.
    kept[name] = before === undefined ? value : [before, value].flat()
  }
  return kept
}

const base64 = (bytes: Uint8Array): string => {
  let text = ""
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

/** The first bytes of a body. Nobody waits for the rest. */
const bodyOf = async (response: Response): Promise<Pick<Answer, "body" | "body_base64" | "body_truncated">> => {
  const bytes = new Uint8Array(maxBody)
  let length = 0
  let isCut = false
  const parts = (response.body ?? []) as AsyncIterable<Uint8Array>
  // Leaving the loop cancels what is left of the body.
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
    // `stream`: a character that the cut went through is left out, and is no fault.
    return { body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(read, { stream: isCut }), ...cut }
  } catch {
    return { body_base64: base64(read), ...cut }
  }
}

/** What went wrong, in the words of the machine that knows: `ECONNREFUSED …` rather than "fetch failed". */
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

/** How a connection ends that was kept open and that the app has closed in the meantime. */
const broken: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"])

const isBroken = (error: unknown): boolean => broken.has((error as { cause?: { code?: string } }).cause?.code)

/**
 * Asks the app, and once more where the connection broke before it answered: the usual reason is that it closed an idle one just then.
 * It may have had the first one, too, which is no harm: deliveries come at least once.
 */
const ask = async (url: URL, init: RequestInit): Promise<Response> => {
  try {
    return await fetch(url, init)
  } catch (error) {
    if (!isBroken(error)) throw error
    return fetch(url, init)
  }
}

/** What the app at `target` says to a delivery. Never rejects: that nobody answered is an answer, too. */
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
      // The app's answer is the answer; where it points to is for who asked.
      redirect: "manual",
      signal: ended === undefined ? timeout : AbortSignal.any([timeout, ended])
    })
    return { status: response.status, headers: shown(response.headers), ...(await bodyOf(response)), error: null }
  } catch (error) {
    return refused(reasonOf(error))
  }
}
