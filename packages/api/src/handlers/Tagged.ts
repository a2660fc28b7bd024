import { type HttpServerRequest, HttpServerResponse } from "effect/http"

/** Whether one has an answer already: it may have several, and a proxy that packs answers makes their tags weak. */
const has = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch
    .slice(0, 4096)
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""))
    .some((tag) => tag === etag || tag === "*")

/** What is the same for everybody until its `ETag` changes: 304 to who has it. */
export const tagged = (
  { headers: { "if-none-match": ifNoneMatch } }: HttpServerRequest.HttpServerRequest,
  etag: string,
  shown: unknown
): HttpServerResponse.HttpServerResponse => {
  const headers = { etag, "cache-control": "private, no-cache" }
  return ifNoneMatch !== undefined && has(ifNoneMatch, etag)
    ? HttpServerResponse.empty({ status: 304, headers })
    : HttpServerResponse.jsonUnsafe(shown, { headers })
}
