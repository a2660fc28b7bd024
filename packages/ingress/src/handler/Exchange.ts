import type { ServerResponse } from "node:http"
import { maxRequestBody } from "@tidegate/model/BodyLimits"
import { isId, prefixes } from "@tidegate/model/Ids"
import { ingressPath, isSlug } from "@tidegate/model/Ingress"
import type { InboundRequest } from "../InboundRequest.ts"
import type { Reply } from "../Reply.ts"
import type { SourceSnapshot } from "../SourceSnapshot.ts"
import type { FramedMessage } from "../wire/FramedMessage.ts"

/** What a request's URL names. */
export interface Target {
  /** The id or the slug of a source. */
  readonly name: string
  readonly path: string
  readonly query: string
}

/** `/e/{id or slug}[/suffix][?query]`; null if it cannot be a source's URL. */
export const readTarget = (url: string): Target | null => {
  const queryAt = url.indexOf("?")
  const path = queryAt < 0 ? url : url.slice(0, queryAt)
  const suffixAt = path.indexOf("/", ingressPath.length)
  const name = suffixAt < 0 ? path.slice(ingressPath.length) : path.slice(ingressPath.length, suffixAt)
  if (!isId(prefixes.source, name) && !isSlug(name)) return null
  return {
    name,
    path: suffixAt < 0 ? "/" : path.slice(suffixAt),
    query: queryAt < 0 ? "" : url.slice(queryAt + 1)
  }
}

/** A request, and what is needed to answer it. */
export interface Exchange {
  readonly target: Target
  readonly request: InboundRequest
  readonly message: FramedMessage
  readonly response: ServerResponse
}

/** Bytes of the body that are in memory: none if the body was announced but not read. */
export const heldBy = ({ request }: Exchange): number => request.body?.length ?? 0

/** Whether the body was not read because of its size, but the present source would accept it. */
export const isCutFor = ({ request }: Exchange, before: SourceSnapshot, now: SourceSnapshot): boolean =>
  before.bin !== null && now.bin === null && request.body === null && request.bodySize <= maxRequestBody

export const noHeaders: Record<string, string> = {}

/** Does nothing if the request has been answered or its connection has ended. */
export const reply = (response: ServerResponse, { body, contentType, headers, status }: Reply): void => {
  if (response.headersSent || response.destroyed) return
  const length = Buffer.byteLength(body)
  const framed = status === 204 || status === 304 ? headers : { ...headers, "content-length": length }
  response.writeHead(status, contentType === null ? framed : { ...framed, "content-type": contentType })
  // Node writes the headers in the encoding of the text that follows them. In latin-1 they keep their bytes.
  response.end(length === body.length ? body : Buffer.from(body), "latin1")
}
