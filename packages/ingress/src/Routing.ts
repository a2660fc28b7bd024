import { derivedId, prefixes } from "@tidegate/model/Ids"
import type { ErrorCode } from "@tidegate/model/GatewayError"
import { requestInput, type RequestInput } from "@tidegate/rules/RequestInput"
import { takePresented } from "@tidegate/verification/PresentedSecrets"
import type { CertificateNeeded, Handshake } from "@tidegate/verification/Provider"
import type { IgnoredEvent, RoutingJob, RequestRecord, RoutedEvent, RoutedRun } from "@tidegate/storage/Journal"
import { externalId, type InboundRequest } from "./InboundRequest.ts"
import type { SourceSnapshot } from "./SourceSnapshot.ts"

/** Why a request is rejected, and the answer to its sender. The cause is stored with the request. */
export interface Rejection {
  readonly cause:
    | "SOURCE_DISABLED"
    | "SOURCE_METHOD_NOT_ALLOWED"
    | "PAYLOAD_TOO_LARGE"
    | "SOURCE_AUTH_FAILED"
    | "SERVICE_WORKER_REFUSED"
    | "LOOP_DETECTED"
  readonly code: ErrorCode
  readonly message: string
}

/** The record of a request to store, and what determines its answer. */
export interface Decision {
  readonly record: RequestRecord
  /** The request with credentials masked. Only verification, deliveries and the upstream see the credentials. */
  readonly request: MaskedRequest
  /** Null if the request is accepted. */
  readonly rejection: Rejection | null
  /** Set if the request is a provider's handshake: accepted, answered with this, and not routed. */
  readonly handshake: Handshake | null
  /** The request as rules read it. */
  readonly input: () => RequestInput
}

/** A decision that exceeded the event-loop budget and is not complete. */
export interface Unfinished {
  /** Continues in a later event-loop iteration. */
  readonly resume: () => Decision | Unfinished
}

const rejections = {
  disabled: { cause: "SOURCE_DISABLED", code: "SOURCE_DISABLED_INGRESS", message: "this source is disabled" },
  method: {
    cause: "SOURCE_METHOD_NOT_ALLOWED",
    code: "SOURCE_METHOD_NOT_ALLOWED",
    message: "this source does not accept that method"
  },
  size: { cause: "PAYLOAD_TOO_LARGE", code: "PAYLOAD_TOO_LARGE", message: "the body is larger than 10 MiB" },
  binSize: { cause: "PAYLOAD_TOO_LARGE", code: "PAYLOAD_TOO_LARGE", message: "the body is larger than 1 MiB" },
  auth: { cause: "SOURCE_AUTH_FAILED", code: "SOURCE_AUTH_FAILED", message: "the request could not be verified" },
  serviceWorker: {
    cause: "SERVICE_WORKER_REFUSED",
    code: "SERVICE_WORKER_REFUSED",
    message: "a source is no script of a service worker"
  },
  loop: {
    cause: "LOOP_DETECTED",
    code: "LOOP_DETECTED",
    message: "the request leads back to the gateway too often: it has come of one that was sent on from here"
  }
} as const satisfies Record<string, Rejection>

/** A request whose credentials are masked in headers and query, and encrypted in `presented`. */
export interface MaskedRequest extends Omit<InboundRequest, "target"> {
  /** Absent if the request presents no credential: then the request is unchanged. */
  readonly presented?: string
}

const nothing: ReadonlyArray<never> = []
const noBody = new Uint8Array(0)

/**
 * Decides about a request before it is stored, from the request and one snapshot of its source alone: enabled, handshake,
 * method, size, verification, then for each connection the result of its fast rules, and the workflow runs that start. The ids are derived, so
 * deciding again with another snapshot yields the same ids, and a request that is routed again is still routed once.
 *
 * If verification needs a certificate first, that is returned: the request is decided again with it. If `isBudgetSpent`, the rest is left for a
 * later event-loop iteration.
 */
export const decide = (
  snapshot: SourceSnapshot,
  received: InboundRequest,
  isBudgetSpent: (since?: number) => boolean
): Decision | Unfinished | CertificateNeeded => {
  // Credentials are masked first, because rejected requests are stored too, and a wrong credential may be almost right.
  const request = mask(snapshot, received)
  if (snapshot.disabled) return reject(snapshot, request, rejections.disabled)
  // A browser sends this header when it fetches a script that would then answer for the whole origin. No web page can omit the header.
  if (received.headers["service-worker"] !== undefined) return reject(snapshot, request, rejections.serviceWorker)
  const { body } = request
  const asked =
    body === null
      ? null
      : {
          method: received.method,
          url: snapshot.origin + received.target,
          headers: received.headers,
          query: received.query,
          body,
          nowSeconds: Math.floor(request.receivedAt / 1000)
        }
  // Checked before the method: providers send handshakes with GET or HEAD to sources that accept neither.
  const handshake = asked === null ? null : snapshot.verifier.handshake(asked)
  if (handshake === "refuse") return reject(snapshot, request, rejections.auth)
  if (handshake === null && !snapshot.allowedMethods.includes(request.method)) {
    return reject(snapshot, request, rejections.method)
  }
  if (body === null || asked === null)
    return reject(snapshot, request, snapshot.bin === null ? rejections.size : rejections.binSize)
  const verification = handshake?.needsCheck === false ? "unverified" : snapshot.verifier.verify(asked)
  if (typeof verification === "object") return verification
  if (verification === "failed") return reject(snapshot, request, rejections.auth)
  if (handshake === null && received.isLoop === true) return reject(snapshot, request, rejections.loop)
  const verified = verification === "verified"
  return handshake === null
    ? route(snapshot, request, body, verified, isBudgetSpent)
    : greet(snapshot, request, body, verified, handshake)
}

const mask = (snapshot: SourceSnapshot, received: InboundRequest): MaskedRequest => {
  const taken = takePresented(snapshot.verifier.presented, received)
  if (taken === null) return received
  const { headers, query, secrets } = taken
  const { target: _, ...request } = received
  return { ...request, headers, query, presented: snapshot.seal(request.id, secrets) }
}

/** Bytes. A larger body is parsed only if the event-loop budget allows. */
const smallBody = 16 * 1024
/** Milliseconds of work that are not checked against the budget. */
const unaskedMs = 1
/**
 * Cost limit of all filters of a source for one request, in steps: a few of the most expensive filters allowed, and far more than real ones
 * use on real requests. Above it the remaining connections become routing jobs, as those with slow rules do. So no request is lost, and an
 * unverified sender can neither delay its own answer nor keep ingress busy.
 */
const maxFiltering = 4_000_000
/** The budget is checked once for this many connections without a filter. */
const portion = 32

const route = (
  snapshot: SourceSnapshot,
  request: MaskedRequest,
  body: Uint8Array,
  verified: boolean,
  isBudgetSpent: (since?: number) => boolean
): Decision | Unfinished => {
  const { routes } = snapshot
  const events: Array<RoutedEvent> = []
  const ignored: Array<IgnoredEvent> = []
  const pending: Array<RoutingJob> = []
  let cliEvents = 0
  const input = requestInput(request, body)
  /** Null once the body needs no parsing in steps. */
  let parsing = body.length <= smallBody ? null : input.parsing()
  let next = 0
  let startedAt = 0
  let filtering = 0
  const isLong = (): boolean => performance.now() - startedAt > unaskedMs && isBudgetSpent(startedAt)

  const proceed = (): Decision | Unfinished => {
    for (; next < routes.length; next++) {
      const { connectionId, connectionShard, destinationId, destinationShard, isTunnel, ordering, rules } =
        routes[next]!
      const filter = rules?.slow === null ? rules.filter : null
      if (filter !== null || ordering !== null) {
        if (startedAt === 0) {
          if (isBudgetSpent()) return unfinished
          startedAt = performance.now()
        }
        if (filter?.looksAtBody === true || ordering?.looksAtBody === true) {
          while (parsing !== null) {
            if (parsing.next().done === true) parsing = null
            if (isLong()) return unfinished
          }
        }
      }
      const orderingKey = ordering === null ? null : ordering.of(input)
      if (rules === null || rules.slow !== null || (rules.filter !== null && filtering >= maxFiltering)) {
        pending.push({
          connectionId,
          shard: connectionShard,
          ordering: ordering === null ? null : { key: orderingKey }
        })
        continue
      }
      let missed: ReadonlyArray<unknown> = nothing
      let isOver = false
      if (rules.filter !== null) {
        missed = rules.filter.failingTargets(input)
        filtering += rules.filter.cost
        isOver = isLong()
      } else if (next % portion === portion - 1) {
        if (startedAt === 0) startedAt = performance.now()
        else isOver = isLong()
      }
      if (missed.length > 0) {
        ignored.push(ignore(request, connectionId, "FILTERED", missed))
      } else {
        if (isTunnel) cliEvents++
        events.push({
          id: derivedId(prefixes.event, request.id, connectionId),
          connectionId,
          destinationId,
          shard: destinationShard,
          dueAt: request.receivedAt + rules.delay,
          orderingKey
        })
      }
      if (isOver && next + 1 < routes.length) {
        next++
        return unfinished
      }
    }
    const runs = snapshot.workflows.length === 0 ? nothing : runsOf(snapshot, request)
    const { awaiting } = snapshot
    const made = { events, ignored, pending, runs, cliEvents, ...(awaiting === undefined ? {} : { awaiting }) }
    const accepted = { status: "accepted", verified, rejectionCause: null, body, ...made } as const
    const record = { ...base(snapshot, request), ...accepted }
    return { rejection: null, handshake: null, request, input: () => input, record }
  }
  const unfinished: Unfinished = {
    resume: () => {
      startedAt = performance.now()
      return proceed()
    }
  }
  return proceed()
}

const runsOf = ({ workflows }: SourceSnapshot, request: MaskedRequest): ReadonlyArray<RoutedRun> =>
  workflows.map((workflow) => ({ id: derivedId(prefixes.workflowRun, request.id, workflow.workflowId), ...workflow }))

const ignore = (
  request: MaskedRequest,
  connectionId: string,
  cause: IgnoredEvent["cause"],
  meta: ReadonlyArray<unknown>
): IgnoredEvent => ({
  id: derivedId(prefixes.ignoredEvent, request.id, connectionId),
  connectionId,
  cause,
  meta: JSON.stringify(meta)
})

/** Records a handshake. It is for the gateway, so each connection stores an ignored event. */
const greet = (
  snapshot: SourceSnapshot,
  request: MaskedRequest,
  body: Uint8Array,
  verified: boolean,
  handshake: Handshake
): Decision => ({
  rejection: null,
  handshake,
  request,
  input: () => requestInput(request, body),
  record: {
    ...base(snapshot, request),
    status: "accepted",
    verified,
    rejectionCause: null,
    body,
    events: nothing,
    ignored: snapshot.routes.map(({ connectionId }) => ignore(request, connectionId, "HANDSHAKE", [handshake.kind])),
    pending: nothing,
    runs: nothing,
    cliEvents: 0
  }
})

const reject = (snapshot: SourceSnapshot, request: MaskedRequest, rejection: Rejection): Decision => ({
  rejection,
  handshake: null,
  request,
  input: () => requestInput(request, request.body ?? noBody),
  record: {
    ...base(snapshot, request),
    status: "rejected",
    verified: false,
    rejectionCause: rejection.cause,
    body: request.body,
    events: nothing,
    ignored: nothing,
    pending: nothing,
    runs: nothing,
    cliEvents: 0,
    ...(request.isSystem === true ? { silent: true } : {})
  }
})

const base = (snapshot: SourceSnapshot, request: MaskedRequest) => ({
  id: request.id,
  teamId: snapshot.teamId,
  sourceId: snapshot.id,
  version: snapshot.version,
  method: request.method,
  path: request.path,
  query: request.query,
  headers: JSON.stringify(request.headers),
  presented: request.presented ?? null,
  bodySize: request.bodySize,
  externalId: externalId(request.headers),
  originalIp: request.originalIp,
  ingestedAt: request.receivedAt
})
