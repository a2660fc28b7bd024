import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { hasTag } from "../Conditional.ts"

/** An answer that is the same for all callers until its `ETag` changes: 304 for a caller that has it, without encoding it. */
export const tagged = (
  { headers: { "if-none-match": ifNoneMatch } }: HttpServerRequest.HttpServerRequest,
  etag: string,
  shown: unknown
): HttpServerResponse.HttpServerResponse => {
  const headers = { etag, "cache-control": "private, no-cache" }
  return ifNoneMatch !== undefined && hasTag(ifNoneMatch, etag)
    ? HttpServerResponse.empty({ status: 304, headers })
    : HttpServerResponse.jsonUnsafe(shown, { headers })
}
