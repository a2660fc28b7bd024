import type { AttemptErrorCode } from "./AttemptErrorCode.ts"
import type { Answer } from "./Exchange.ts"

/** The answer of a request that is not sent. */
export const refusal = (code: AttemptErrorCode, message: string): Answer => {
  const now = Date.now()
  return {
    status: null,
    headers: {},
    body: Buffer.alloc(0),
    bodyTruncated: false,
    errorCode: code,
    errorMessage: message,
    sentAt: now,
    respondedAt: now
  }
}

/** The URL to send to, or the answer if nothing may be sent. */
export const parseUrl = (text: string): URL | Answer => {
  if (text === "") return refusal("MISSING_URL", "no URL")
  const url = URL.parse(text)
  // The URL is not in the messages, because its query may contain a secret.
  if (url === null) return refusal("INVALID_URL", "not an absolute URL")
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return refusal("INVALID_URL", `${url.protocol} is not http: or https:`)
  }
  if (url.username !== "" || url.password !== "") {
    return refusal("INVALID_URL", "user name and password do not belong in a URL")
  }
  return url
}

/** Where a request goes. */
export interface Place {
  readonly origin: string
  /** With the query. */
  readonly path: string
}

/** The longest URL (characters) that is cached, and how many are cached: at most 1 MB of text. */
const rememberedLength = 1_024
const rememberedUrls = 1_024

/** The places of recent URLs: a destination sends to the same one again and again, and a URL is slow to parse. */
export const makePlaces = () => {
  const known = new Map<string, Place>()
  return (text: string): Place | Answer => {
    const found = known.get(text)
    if (found !== undefined) return found
    const url = parseUrl(text)
    if (!(url instanceof URL)) return url
    const place = { origin: url.origin, path: url.pathname + url.search }
    if (text.length <= rememberedLength) {
      if (known.size >= rememberedUrls) known.clear()
      known.set(text, place)
    }
    return place
  }
}
