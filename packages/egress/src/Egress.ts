import { Context, Effect, Layer } from "effect"
import type { Dispatcher } from "undici"
import type { ClientTls } from "@tidegate/model/ClientTls"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { setByClient } from "@tidegate/model/HeaderRules"
import type { AttemptErrorCode } from "./AttemptErrorCode.ts"
import { Exchange } from "./Exchange.ts"
import type { Answer, AnswerReader } from "./Exchange.ts"
import { InvalidNetwork, makeGuard } from "./Guard.ts"
import type { Guard, GuardOptions } from "./Guard.ts"
import { makeOrigins } from "./Origins.ts"
import { distinguishingResets } from "./Resets.ts"
import { makePlaces, parseUrl, type Place, refusal } from "./Places.ts"

export type { Answer, AttemptErrorCode, Guard }

/** An outbound request. */
export interface Outbound {
  readonly method: string
  /** Absolute, http or https, without user name or password. A fragment is not sent. */
  readonly url: string
  /**
   * Flat: `[name, value, name, value, …]`, the form that the HTTP client takes without a copy; a repeated name is sent repeatedly.
   * The client sets headers that belong to the connection or to the framing (`host`, `content-length`, `transfer-encoding`, …); given
   * ones are dropped.
   */
  readonly headers?: ReadonlyArray<string>
  readonly body?: Uint8Array | string | null
  /** URLs that the target is asked to fetch. Only for `deliver`: nothing is sent unless each one has a public host. */
  readonly fetched?: ReadonlyArray<string>
  /** A certificate to show to the server, or authorities to trust. */
  readonly tls?: ClientTls
  /** Milliseconds for the whole exchange: waiting for a connection, connecting, sending, and the answer to its last byte. */
  readonly timeoutMs?: number
  /** Bytes of the answer's body that are kept. Default `maxCapturedBytes`. */
  readonly captureBytes?: number
  /** Ends the exchange as NETWORK_REQUEST_CANCELED. */
  readonly signal?: AbortSignal
  /** Called just before the request is written; false ends the exchange as NETWORK_REQUEST_CANCELED, unsent. */
  readonly mayStart?: () => boolean
}

export interface EgressOptions extends GuardOptions {
  /** Connections to one origin at the same time. Further exchanges wait, within their own time limit. Default 128. */
  readonly connectionsPerOrigin?: number
  /** The same for streamed answers, which have separate connections. Default 512. */
  readonly streamsPerOrigin?: number
  /** Origins without exchanges that are kept open for reuse. Default 1,000. */
  readonly maxIdleOrigins?: number
  /** Connections to all origins, in use or idle, above which idle origins are closed. Default 8,192. */
  readonly maxConnections?: number
  /** Milliseconds that closing waits for exchanges in progress before it cancels them. Default 10 s. */
  readonly drainMs?: number
}

/** An exchange whose answer is streamed. */
export interface Streaming {
  /** Continues after `onData` has returned false. Must not be called from inside a method of a reader. */
  readonly resume: () => void
  /** Ends the exchange as NETWORK_REQUEST_CANCELED with that message; no effect if it has ended. */
  readonly cancel: (message: string) => void
}

const defaultTimeoutMs = 30_000
/** Limits for origins to which destinations show their own certificates: idle origins, and connections to all of them. */
const maxIdleIdentities = 100
const maxIdentityConnections = 2_048
/** For deliveries, which are many and short. A request that waits at the limit of an origin waits for one of its pools. */
const connectionsPerPool = 64

const messageHeaders = (headers: ReadonlyArray<string>): Array<string> => {
  const kept: Array<string> = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!
    if (!setByClient.has(name.toLowerCase())) kept.push(name, headers[i + 1]!)
  }
  return kept
}

/** Awaits a look-up, unless the timeout or the signal comes first. Also returns the function that stops these two. */
const untilOver = <A>(
  looked: Promise<A>,
  timeoutMs: number,
  signal: AbortSignal | undefined
): readonly [Promise<A | Answer>, () => void] => {
  let stop = (): void => undefined
  const over = new Promise<Answer>((resolve) => {
    const aborted = (): void => resolve(refusal("NETWORK_REQUEST_CANCELED", "cancelled by the gateway"))
    const late = (): void => resolve(refusal("TIMEOUT", `no answer within ${timeoutMs} ms`))
    const timer = setTimeout(late, timeoutMs)
    signal?.addEventListener("abort", aborted)
    if (signal?.aborted === true) aborted()
    stop = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", aborted)
    }
  })
  return [Promise.race([looked, over]), stop]
}

/** The handle of an exchange that never started. */
const ended: Streaming = { resume: () => undefined, cancel: () => undefined }

/** The client without Effect, for `Egress.layer`. Throws `InvalidNetwork`. */
const makeEgress = (options: EgressOptions) => {
  const guard = makeGuard(options)
  const maxIdleOrigins = options.maxIdleOrigins ?? 1_000
  const maxConnections = options.maxConnections ?? 8_192
  const delivering = makeOrigins({
    guard,
    connectionsPerOrigin: options.connectionsPerOrigin ?? 128,
    connectionsPerPool,
    maxIdleOrigins,
    maxConnections
  })
  // Separate connections, because a stream may hold its connection for hours: deliveries to the same origin must not wait for it.
  const streaming = makeOrigins({
    guard: {
      connect: distinguishingResets(guard.connect),
      connectAs: (tls) => distinguishingResets(guard.connectAs(tls))
    },
    connectionsPerOrigin: options.streamsPerOrigin ?? 512,
    maxIdleOrigins,
    maxConnections
  })
  // The limits are lower, because each of these origins also holds its own certificates.
  const identified = makeOrigins({
    guard,
    connectionsPerOrigin: options.connectionsPerOrigin ?? 128,
    connectionsPerPool,
    maxIdleOrigins: Math.min(maxIdleOrigins, maxIdleIdentities),
    maxConnections: Math.min(maxConnections, maxIdentityConnections)
  })
  const placeOf = makePlaces()
  let inFlight = 0
  let closing = false
  let onDrained: (() => void) | undefined

  const send = (
    outbound: Outbound,
    { origin, path }: Place,
    reader: AnswerReader | undefined,
    resolve: (answer: Answer) => void
  ): Exchange => {
    const { tls } = outbound
    const origins = reader !== undefined ? streaming : tls === undefined ? delivering : identified
    const connections = origins.acquire(origin, tls)
    inFlight++
    const options: Dispatcher.DispatchOptions = {
      path,
      method: outbound.method,
      headers: messageHeaders(outbound.headers ?? []),
      body: outbound.body ?? null
    }
    const exchange = new Exchange({
      timeoutMs: outbound.timeoutMs ?? defaultTimeoutMs,
      captureBytes: outbound.captureBytes ?? maxCapturedBytes,
      signal: outbound.signal,
      mayStart: outbound.mayStart,
      reader,
      onSettled: (answer) => {
        // The request may still be in the client's queue, which would keep its body in memory.
        options.body = null
        origins.release(connections)
        if (--inFlight === 0) onDrained?.()
        resolve(answer)
      }
    })
    connections.pool.dispatch(options, exchange)
    return exchange
  }

  /** The place to send to, or the refusal if nothing may be sent. */
  const admit = (outbound: Outbound): Place | Answer => {
    if (closing) return refusal("NETWORK_REQUEST_CANCELED", "the gateway is shutting down")
    if (outbound.signal?.aborted === true) return refusal("NETWORK_REQUEST_CANCELED", "cancelled by the gateway")
    return placeOf(outbound.url)
  }

  const deliverNow = (outbound: Outbound): Promise<Answer> =>
    new Promise((resolve) => {
      const place = admit(outbound)
      if ("origin" in place) send(outbound, place, undefined, resolve)
      else resolve(place)
    })

  /**
   * Why a target must not be asked to fetch a URL; null if it may. The target resolves the name again, so this is no complete protection. It
   * keeps tenants from using a target to reach the operator's networks, or the target's own.
   */
  const refusalOf = async (text: string): Promise<Answer | null> => {
    const url = parseUrl(text)
    if (!(url instanceof URL)) return url
    const refused = await guard.refusalOf(url.hostname.replace(/^\[(.*)\]$/, "$1"))
    return refused === null ? null : refusal(refused.code, refused.message)
  }

  /** The look-ups count towards the timeout, and end with it. An answer that comes later is ignored. */
  const deliverChecked = async (outbound: Outbound, fetched: ReadonlyArray<string>): Promise<Answer> => {
    const since = performance.now()
    const { signal, timeoutMs = defaultTimeoutMs } = outbound
    const looked = Promise.all([...new Set(fetched)].map(refusalOf))
    const [refusals, stop] = untilOver(looked, timeoutMs, signal)
    const judged = await refusals.finally(stop)
    if (!Array.isArray(judged)) return judged
    const left = timeoutMs - (performance.now() - since)
    return judged.find((one) => one !== null) ?? deliverNow({ ...outbound, timeoutMs: Math.max(1, Math.floor(left)) })
  }

  const deliver = (outbound: Outbound): Promise<Answer> =>
    outbound.fetched === undefined || outbound.fetched.length === 0
      ? deliverNow(outbound)
      : deliverChecked(outbound, outbound.fetched)

  const stream = (outbound: Outbound, reader: AnswerReader): Streaming => {
    // Deferred, so that it is never called before this function returns.
    const end = (answer: Answer): void => queueMicrotask(() => reader.onEnd(answer))
    const place = admit(outbound)
    if ("origin" in place) return send(outbound, place, reader, end)
    end(place)
    return ended
  }

  const close = async (): Promise<void> => {
    closing = true
    if (inFlight > 0) {
      const drained = new Promise<void>((resolve) => (onDrained = resolve))
      let timer: NodeJS.Timeout | undefined
      const tooLong = new Promise<void>((resolve) => (timer = setTimeout(resolve, options.drainMs ?? 10_000)))
      await Promise.race([drained, tooLong])
      clearTimeout(timer)
    }
    await Promise.all([delivering.destroy(), identified.destroy(), streaming.destroy()])
  }

  return { guard, deliver, stream, openOrigins: () => delivering.size() + identified.size() + streaming.size(), close }
}

/**
 * The gateway's only way out: every outbound HTTP request uses `deliver` or `stream`, and every other outbound socket is
 * opened by `guard`. A test of this package reads all sources to enforce this.
 */
export class Egress extends Context.Service<
  Egress,
  {
    /**
     * Sends one HTTP/1.1 request and returns how it ended. Never rejects.
     *
     * - Redirects are not followed: a 3xx is an answer like any other.
     * - The answer counts as received once its body is complete or exceeds `captureBytes`. Above that the rest is dropped with its
     *   connection, so that a target that never ends its body costs no more than one that ends it at the limit. A body
     *   that stays within the limit but does not end in time is TIMEOUT.
     * - One timeout covers everything, including the wait for a free connection.
     * - Nothing is sent twice: if the target closes a connection while it is reused, the result is SOCKET_CLOSED or
     *   CONNECTION_RESET, because the request may have had its effect. The retry rule decides whether to repeat it.
     * - A target that sends "100 Continue" without being asked is PROTOCOL_ERROR (a limit of the HTTP client); a few other 1xx are ignored.
     *
     * It runs outside Effect, because it is called for every delivery. In an effect:
     * `Effect.promise((signal) => egress.deliver({ ...outbound, signal }))`.
     */
    readonly deliver: (outbound: Outbound) => Promise<Answer>
    /**
     * Like `deliver`, but passes the answer to the reader as it arrives, whatever its length. `captureBytes` of it are also kept.
     *
     * - `timeoutMs` limits the time until the headers are complete, including the wait for a connection; after them it limits each pause of
     *   the target. No time counts while the reader pauses the target: the caller limits that.
     * - An answer that breaks off is an error, even if its body would have ended with the connection and that was reset.
     * - If a reader throws, the exchange ends (UNKNOWN).
     * - `signal` and `mayStart` mean the same as for `deliver`.
     */
    readonly stream: (outbound: Outbound, reader: AnswerReader) => Streaming
    readonly guard: Guard
    /** Number of origins that hold connections or memory now, in use or idle. */
    readonly openOrigins: () => number
  }
>()("@tidegate/egress/Egress") {
  /** Closing the scope lets exchanges in progress finish (for at most `drainMs`) and closes every connection. */
  static readonly layer = (options: EgressOptions): Layer.Layer<Egress, InvalidNetwork> =>
    Layer.effect(
      Egress,
      Effect.map(
        Effect.acquireRelease(
          Effect.try({
            try: () => makeEgress(options),
            catch: (error) => {
              if (error instanceof InvalidNetwork) return error
              throw error
            }
          }),
          (egress) => Effect.promise(egress.close)
        ),
        ({ deliver, guard, openOrigins, stream }) => Egress.of({ deliver, guard, openOrigins, stream })
      )
    )
}
