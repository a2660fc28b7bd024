import { channelPath } from "@tidegate/model/Ingress"

/** What the URL of a callback names. */
export interface CallbackTarget {
  readonly token: string
  /** Without "?". */
  readonly query: string
}

/** 32 random bytes in base62. */
const tokenForm = /^[0-9A-Za-z]{43}$/

/** `/channels/{token}[?query]`; null if it cannot be a callback's URL. */
export const readCallbackTarget = (url: string): CallbackTarget | null => {
  const queryAt = url.indexOf("?")
  const token = url.slice(channelPath.length, queryAt < 0 ? undefined : queryAt)
  return tokenForm.test(token) ? { token, query: queryAt < 0 ? "" : url.slice(queryAt + 1) } : null
}
