import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Context, Effect, Layer } from "effect"
import { type Answer, type AttemptErrorCode, Egress } from "@tidegate/egress/Egress"
import { Loops } from "@tidegate/entities/Loops"
import { loopHeader } from "@tidegate/model/HeaderRules"
import { type ErrorCode, fail, toResponse } from "@tidegate/model/GatewayError"
import type { ProxyExchangeRecord } from "@tidegate/storage/delivery/ProxyExchanges"
import type { InboundRequest } from "./InboundRequest.ts"
import { callerHeaders, type ProxyTarget, upstreamHeaders, upstreamUrl } from "./ProxyCall.ts"

/** How a source in proxy mode calls its upstream. */
export interface ProxySettings extends ProxyTarget {
  /** Whether to forward the credential by which the source itself verifies. */
  readonly forward_credentials?: boolean
  /** Milliseconds until the headers of the answer must be complete, and the longest pause of the upstream after them. */
  readonly timeout_ms: number
  /** Bytes of the answer's body that are kept for the trace. The caller gets all of it. */
  readonly capture_response_bytes: number
}

export interface Forwarding {
  readonly settings: ProxySettings
  readonly request: Pick<InboundRequest, "method" | "path" | "query" | "headers" | "body">
  /** The query for the record, with credentials masked. */
  readonly shownQuery: string
  /** The gateway's origin as senders see it. */
  readonly publicUrl: URL | string
  readonly message: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
}

/** The record of an exchange, without its owner. */
export type ProxyOutcome = Omit<ProxyExchangeRecord, "teamId" | "sourceId">

export interface ProxyUpstreamOptions {
  /** Milliseconds that a caller may take to read what the gateway has buffered for it (about 100 KB). Default 60 s. */
  readonly callerPatienceMs?: number
}

/**
 * Forwards a stored request to the upstream of its source and streams the answer to the caller, at the speed of the slower
 * one. Plain callbacks, like the ingress handler that calls it.
 *
 * - No answer in time is 504 UPSTREAM_TIMEOUT, no answer at all 502 UPSTREAM_ERROR; a path that leaves the target's path is
 *   400. These answers to the caller name no host and no address.
 * - If an answer breaks off after its headers were sent, the caller's connection is cut: a partial answer must not look
 *   complete.
 * - A caller that disconnects or stops reading ends the exchange.
 */
export class ProxyUpstream extends Context.Service<
  ProxyUpstream,
  {
    /**
     * `done` is called exactly once, when the exchange is over: after the last byte of the upstream, which for an event stream can
     * take hours. It may be called before `forward` returns.
     */
    readonly forward: (forwarding: Forwarding, done: (outcome: ProxyOutcome) => void) => void
  }
>()("@tidegate/ingress/ProxyUpstream") {
  static readonly layerWith = (options: ProxyUpstreamOptions): Layer.Layer<ProxyUpstream, never, Egress> =>
    Layer.effect(
      ProxyUpstream,
      Effect.suspend(() => make(options))
    )

  static readonly layer: Layer.Layer<ProxyUpstream, never, Egress> = ProxyUpstream.layerWith({})
}

/** How an exchange ended, with the members that its record needs. */
type Ending = Pick<Answer, "status" | "headers" | "body" | "bodyTruncated" | "errorMessage"> & {
  readonly errorCode: AttemptErrorCode | null
}

const unsent = (errorCode: AttemptErrorCode, errorMessage: string): Ending => ({
  status: null,
  headers: {},
  body: Buffer.alloc(0),
  bodyTruncated: false,
  errorCode,
  errorMessage
})

const gone = "the caller went away"

const make = Effect.fnUntraced(function* (options: ProxyUpstreamOptions) {
  const egress = yield* Egress
  const clock = yield* Clock.Clock
  const loops = yield* Loops
  const callerPatienceMs = options.callerPatienceMs ?? 60_000

  const forward = (forwarding: Forwarding, done: (outcome: ProxyOutcome) => void): void => {
    const { message, request, requestId, response, settings } = forwarding
    const startedAt = clock.currentTimeMillisUnsafe()
    const started = performance.now()
    const sinceStart = (): number => Math.round(performance.now() - started)
    let latency: number | null = null
    const url = upstreamUrl(settings, request.path, request.query)
    const shownUrl =
      forwarding.shownQuery === request.query ? url : upstreamUrl(settings, request.path, forwarding.shownQuery)

    const finish = ({ body, bodyTruncated, errorCode, errorMessage, headers, status }: Ending): void =>
      done({
        requestId,
        targetUrl: shownUrl ?? settings.target_url,
        httpMethod: request.method,
        responseStatus: status,
        responseHeaders: status === null ? null : JSON.stringify(headers),
        responseBody: status === null ? null : body,
        responseBodyTruncated: bodyTruncated,
        errorCode,
        errorText: errorMessage,
        startedAt,
        respondedAt: latency === null ? null : startedAt + latency,
        responseLatency: latency,
        createdAt: startedAt + sinceStart()
      })

    if (response.destroyed) return finish(unsent("NETWORK_REQUEST_CANCELED", gone))
    if (url === null) {
      refuse(response, requestId, "VALIDATION_ERROR", "the path leads out of the path that this source forwards to")
      return finish(unsent("PATH_NOT_ALLOWED", "the path leads out of the target URL's"))
    }

    let patience: NodeJS.Timeout | undefined
    /** Starts the time limit within which the caller has to read the buffered bytes. */
    const awaitCaller = (onImpatience: () => void): void => {
      clearTimeout(patience)
      patience = setTimeout(onImpatience, callerPatienceMs)
    }

    const end = ({ errorCode }: Answer): void => {
      if (response.destroyed) return
      if (errorCode === null) {
        response.end()
        if (!response.writableFinished) awaitCaller(() => cut(message, response))
      } else if (response.headersSent) cut(message, response)
      else if (errorCode === "TIMEOUT") {
        refuse(response, requestId, "UPSTREAM_TIMEOUT", "the upstream did not answer in time")
      } else
        refuse(response, requestId, "UPSTREAM_ERROR", "the upstream could not be reached, or its answer was broken")
    }

    const streaming = egress.stream(
      {
        method: request.method,
        url,
        headers: [
          ...upstreamHeaders(request, message.socket.remoteAddress ?? null, new URL(forwarding.publicUrl), requestId),
          loopHeader,
          loops.next(request.headers, requestId)
        ],
        body: request.body,
        timeoutMs: settings.timeout_ms,
        captureBytes: settings.capture_response_bytes
      },
      {
        onHeaders: (status, headers) => {
          latency = sinceStart()
          if (response.destroyed) return
          response.writeHead(status, [...callerHeaders(status, headers, requestId)])
          // Sent with the first bytes of the body if there are any; an event stream may have none for a long time.
          process.nextTick(sendHeaders, response)
        },
        onData: (chunk) => {
          if (response.destroyed) return false
          if (response.write(chunk)) return true
          awaitCaller(() => {
            streaming.cancel("the caller stopped reading")
          })
          return false
        },
        onEnd: (answer) => {
          clearTimeout(patience)
          end(answer)
          finish(answer)
        }
      }
    )
    response.on("drain", () => {
      clearTimeout(patience)
      streaming.resume()
    })
    response.on("close", () => {
      clearTimeout(patience)
      streaming.cancel(gone)
    })
  }

  return ProxyUpstream.of({ forward })
})

const noBytes = Buffer.alloc(0)

/** `flushHeaders` is not used: it writes UTF-8, which changes the bytes of non-ASCII values. */
const sendHeaders = (response: ServerResponse): void => {
  if (!response.writableEnded && !response.destroyed) response.write(noBytes)
}

/**
 * Cuts the caller's connection in the middle of an answer. HTTP/1.0 has no chunks, so a normal end of the connection can mean the end of
 * the body; only a reset shows that it is incomplete.
 */
const cut = (message: IncomingMessage, response: ServerResponse): void => {
  if (message.httpVersionMinor === 0) message.socket.resetAndDestroy()
  else response.destroy()
}

const refuse = (response: ServerResponse, requestId: string, code: ErrorCode, text: string): void => {
  const answer = toResponse(fail(code, text))
  const body = JSON.stringify(answer.body)
  response.writeHead(answer.status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "x-gateway-request-id": requestId
  })
  response.end(body)
}
