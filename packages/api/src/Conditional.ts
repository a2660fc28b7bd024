import { hash } from "node:crypto"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"

/** A larger answer (bytes) gets no tag: computing it would take longer than it saves. */
const maxTagged = 1024 * 1024

/** Whether the caller has this answer already: it may have several tags, and a compressing proxy makes tags weak. */
export const hasTag = (ifNoneMatch: string, etag: string): boolean =>
  ifNoneMatch
    .slice(0, 4096)
    .split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""))
    .some((tag) => tag === etag || tag === "*")

/**
 * Adds an `ETag`, computed from the bytes of the answer, to a read; 304 when the caller has it already. An answer with a tag of
 * its own is left unchanged.
 */
export const tagRead = (
  { headers: { "if-none-match": ifNoneMatch }, method }: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const { body, headers, status } = response
  if (status !== 200 || (method !== "GET" && method !== "HEAD") || headers["etag"] !== undefined) return response
  if (body._tag !== "Uint8Array" || body.body.length > maxTagged) return response
  const etag = `"${hash("sha256", body.body, "base64url").slice(0, 27)}"`
  if (ifNoneMatch === undefined || !hasTag(ifNoneMatch, etag))
    return HttpServerResponse.setHeader(response, "etag", etag)
  return HttpServerResponse.empty({ status: 304, headers: { etag } })
}

/**
 * Why a change may not be made under its condition; null: it may. A record shows more than what is written to it (counts, health,
 * names of other resources), so its tag does not tell whether somebody else has changed it. A condition that cannot be checked is
 * refused, not ignored.
 */
export const refusedCondition = ({
  headers: { "if-match": ifMatch },
  method
}: HttpServerRequest.HttpServerRequest): GatewayError | null =>
  ifMatch === undefined || ifMatch.trim() === "*" || method === "GET" || method === "HEAD" || method === "OPTIONS"
    ? null
    : invalid([
        { path: "If-Match", message: "is not supported here; a workflow is saved against the version in its body" }
      ])
