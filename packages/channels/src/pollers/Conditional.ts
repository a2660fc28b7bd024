import type { Schema } from "effect"
import type { ProviderAnswer } from "../Adapter.ts"
import { textOf } from "../Foreign.ts"

/** Conditional requests: a list that has not changed is not sent again. */

const longest = 1_024

/** The version headers of an answer, and the URL to which they belong. */
export const validatorsOf = ({ headers }: ProviderAnswer, url: string): Readonly<Record<string, string>> => {
  const [etag, modified] = [headers["etag"] ?? "", headers["last-modified"] ?? ""]
  return {
    url,
    ...(etag !== "" && etag.length <= longest ? { etag } : {}),
    ...(modified !== "" && modified.length <= longest ? { modified } : {})
  }
}

/** The headers of a request that asks for a later version. Versions of another URL mean nothing. */
export const unchangedSince = (state: Schema.JsonObject, url: string): Readonly<Record<string, string>> => {
  if (textOf(state, "url") !== url) return {}
  const [etag, modified] = [textOf(state, "etag"), textOf(state, "modified")]
  return {
    ...(etag === null ? {} : { "if-none-match": etag }),
    ...(modified === null ? {} : { "if-modified-since": modified })
  }
}
