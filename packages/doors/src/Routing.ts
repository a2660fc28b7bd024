import { derivedId, prefixes } from "@tidegate/model/Ids"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import type { Json } from "@tidegate/model/Rule"
import type { FilterInput } from "@tidegate/rules/Filter"
import type { IgnoredEvent, PendingRoute, RequestRecord, RoutedEvent } from "@tidegate/storage/journal/AcceptStatement"
import { externalId, type InboundRequest, parseBody, parseQuery } from "./InboundRequest.ts"
import type { SourceSnapshot } from "./SourceSnapshots.ts"

/** Why a request is turned away, and what its sender is told. The cause is stored with the request. */
export interface Rejection {
  readonly cause: "SOURCE_DISABLED" | "SOURCE_METHOD_NOT_ALLOWED" | "PAYLOAD_TOO_LARGE" | "SOURCE_AUTH_FAILED"
  readonly code: ErrorCode
  readonly message: string
}

export interface Decision {
  readonly rejection: Rejection | null
  readonly record: RequestRecord
}

const rejections = {
  disabled: { cause: "SOURCE_DISABLED", code: "SOURCE_DISABLED_INGRESS", message: "this source is disabled" },
  method: {
    cause: "SOURCE_METHOD_NOT_ALLOWED",
    code: "SOURCE_METHOD_NOT_ALLOWED",
    message: "this source does not accept that method"
  },
  size: { cause: "PAYLOAD_TOO_LARGE", code: "PAYLOAD_TOO_LARGE", message: "the body is larger than 10 MiB" },
  auth: { cause: "SOURCE_AUTH_FAILED", code: "SOURCE_AUTH_FAILED", message: "the request could not be verified" }
} as const satisfies Record<string, Rejection>

const nothing: ReadonlyArray<never> = []

/**
 * Everything that is decided about a request before it is stored, from the request and one snapshot of its source alone:
 * enabled, method, size, verification, then for each connection what its cheap rules make of it. Deciding again with
 * another snapshot yields the same ids, so a request that has to be routed again is still routed once.
 */
export const decide = (snapshot: SourceSnapshot, request: InboundRequest): Decision => {
  if (snapshot.disabled) return reject(snapshot, request, rejections.disabled)
  if (!snapshot.allowedMethods.includes(request.method)) return reject(snapshot, request, rejections.method)
  if (request.body === null) return reject(snapshot, request, rejections.size)
  const verification = snapshot.verifier.verify({
    headers: request.headers,
    query: request.query,
    body: request.body,
    nowSeconds: Math.floor(request.receivedAt / 1000)
  })
  if (verification === "failed") return reject(snapshot, request, rejections.auth)
  return { rejection: null, record: route(snapshot, request, request.body, verification === "verified") }
}

const route = (
  snapshot: SourceSnapshot,
  request: InboundRequest,
  body: Uint8Array,
  verified: boolean
): RequestRecord => {
  const events: Array<RoutedEvent> = []
  const ignored: Array<IgnoredEvent> = []
  const pending: Array<PendingRoute> = []
  const input = lazyInput(request, body)
  for (const { connectionId, connectionShard, destinationId, destinationShard, rules } of snapshot.routes) {
    if (rules === null || rules.slow !== null) {
      pending.push({ connectionId, shard: connectionShard })
      continue
    }
    const missed = rules.filter === null ? nothing : rules.filter.failingTargets(input)
    if (missed.length > 0) {
      ignored.push({
        id: derivedId(prefixes.ignoredEvent, request.id, connectionId),
        connectionId,
        cause: "FILTERED",
        meta: JSON.stringify(missed)
      })
    } else {
      events.push({
        id: derivedId(prefixes.event, request.id, connectionId),
        connectionId,
        destinationId,
        shard: destinationShard,
        dueAt: request.receivedAt + rules.delay
      })
    }
  }
  return {
    ...base(snapshot, request),
    status: "accepted",
    verified,
    rejectionCause: null,
    body,
    events,
    ignored,
    pending
  }
}

/** What filters look at; the body and the query are parsed when the first filter asks for them. */
const lazyInput = (request: InboundRequest, body: Uint8Array): FilterInput => {
  let parsedBody: { readonly value: Json } | undefined
  let parsedQuery: ReturnType<typeof parseQuery> | undefined
  return {
    headers: request.headers,
    path: request.path,
    method: request.method,
    get query() {
      return (parsedQuery ??= parseQuery(request.query))
    },
    body: () => (parsedBody ??= { value: parseBody(request.headers, body) }).value
  }
}

const reject = (snapshot: SourceSnapshot, request: InboundRequest, rejection: Rejection): Decision => ({
  rejection,
  record: {
    ...base(snapshot, request),
    status: "rejected",
    verified: false,
    rejectionCause: rejection.cause,
    body: request.body,
    events: nothing,
    ignored: nothing,
    pending: nothing
  }
})

const base = (snapshot: SourceSnapshot, request: InboundRequest) => ({
  id: request.id,
  teamId: snapshot.teamId,
  sourceId: snapshot.id,
  version: snapshot.version,
  method: request.method,
  path: request.path,
  query: request.query,
  headers: JSON.stringify(request.headers),
  bodySize: request.bodySize,
  externalId: externalId(request.headers),
  originalIp: request.originalIp,
  ingestedAt: request.receivedAt
})
