import { Context, Effect, Layer } from "effect"
import type { Dispatcher } from "undici"
import { maxCapturedBytes } from "@tidegate/model/BodyLimits"
import { setByClient } from "@tidegate/model/HeaderRules"
import type { AttemptErrorCode } from "./AttemptErrorCode.ts"
import { Exchange } from "./Exchange.ts"
import type { Answer, AnswerReader } from "./Exchange.ts"
import { InvalidNetwork, makeGuard } from "./Guard.ts"
import type { Guard, GuardOptions } from "./Guard.ts"
import { makeOrigins } from "./Origins.ts"

export type { Answer, AttemptErrorCode, Guard }

/** A request to the outside. */
export interface Outbound {
  readonly method: string
  /** Absolute, http or https, without user name or password. A fragment is not sent. */
  readonly url: string
  /**
   * Flat: `[name, value, name, value, …]`, the form the HTTP client takes without a copy; a repeated name is sent repeatedly.
   * Headers that belong to the connection or frame the message (`host`, `content-length`, `transfer-encoding`, …) are set
   * by the client; given ones are left out.
   */
  readonly headers?: ReadonlyArray<string>
  readonly body?: Uint8Array | string | null
  /** URLs that the target is told to fetch itself. Of `deliver`: nothing is sent unless each leads to a public host. */
  readonly fetched?: ReadonlyArray<string>
  /** Milliseconds for the whole exchange: waiting for a connection, connecting, sending and the answer to its last byte. */
  readonly timeoutMs?: number
  /** How many bytes of the answer's body are kept. Default `maxCapturedBytes`. */
  readonly captureBytes?: number
  /** Ends the exchange as NETWORK_REQUEST_CANCELED. */
  readonly signal?: AbortSignal
  /** Asked when the request is about to be written; false ends the exchange as NETWORK_REQUEST_CANCELED, unsent. */
  readonly mayStart?: () => boolean
}

export interface EgressOptions extends GuardOptions {
  /** Connections to one origin at the same time. Further exchanges wait, on their own budget. Default 128. */
  readonly connectionsPerOrigin?: number
  /** The same for answers that are streamed, which have connections of their own. Default 512. */
  readonly streamsPerOrigin?: number
  /** Origins kept open for reuse with nothing in flight. Default 1,000. */
  readonly maxIdleOrigins?: number
  /** Connections to all origins, in use or idle, beyond which idle origins are closed. Default 8,192. */
  readonly maxConnections?: number
  /** Milliseconds that closing waits for what is in flight, before it is cancelled. Default 10 s. */
  readonly drainMs?: number
}

/** An exchange whose answer is streamed. */
export interface Streaming {
  /** Goes on after `onData` has returned false. Not to be called from inside a method of a reader. */
  readonly resume: () => void
  /** Ends the exchange as NETWORK_REQUEST_CANCELED, with that message; no effect if it has ended. */
  readonly cancel: (message: string) => void
}

const defaultTimeoutMs = 30_000
/** Of deliveries, which are many and short. Who waits behind the limit of an origin waits for one of its pools. */
const connectionsPerPool = 64

const messageHeaders = (headers: ReadonlyArray<string>): Array<string> =>
  headers.filter((_, index) => !setByClient.has(headers[index - (index % 2)]!.toLowerCase()))

const refusal = (code: AttemptErrorCode, message: string): Answer => {
  const now = Date.now()
  return {
    status: null,
    headers: {},
    body: Buffer.alloc(0),
    bodyTruncated: false,
    errorCode: code,
    errorMessage: message,
    sentAt: now,
    respondedAt: now
  }
}

/** The URL to send to, or the answer to one that nothing is sent to. */
const parseUrl = (text: string): URL | Answer => {
  if (text === "") return refusal("MISSING_URL", "no URL")
  const url = URL.parse(text)
  // The URL stays out of the messages: its query may hold a secret.
  if (url === null) return refusal("INVALID_URL", "not an absolute URL")
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    return refusal("INVALID_URL", `${url.protocol} is not http: or https:`)
  }
  if (url.username !== "" || url.password !== "") {
    return refusal("INVALID_URL", "user name and password do not belong in a URL")
  }
  return url
}

/**
 * undici takes a reset for the end of a body that ends with its connection, and for the reset it knows a code. A broken body
 * must not be handed on as a whole one, so it is told a sibling of that code.
 */
const distinguishingResets =
  (connect: Guard["connect"]): Guard["connect"] =>
  (target, callback) =>
    connect(target, (...result) => {
      result[1]?.on("error", (error: NodeJS.ErrnoException) => {
        if (error.code === "ECONNRESET") error.code = "ECONNABORTED"
      })
      callback(...result)
    })

/** What is looked up, unless the time is over or the signal comes first; and how to stop waiting for these. */
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

/** Of an exchange that never began. */
const ended: Streaming = { resume: () => undefined, cancel: () => undefined }

/**
 * The client without Effect around it, for `Egress.layer`. Throws `InvalidNetwork`.
 */
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
  // Apart, because a stream may hold its connection for hours: deliveries to the same origin must not wait for it.
  const streaming = makeOrigins({
    guard: { connect: distinguishingResets(guard.connect) },
    connectionsPerOrigin: options.streamsPerOrigin ?? 512,
    maxIdleOrigins,
    maxConnections
  })
  let inFlight = 0
  let closing = false
  let onDrained: (() => void) | undefined

  const send = (
    outbound: Outbound,
    url: URL,
    reader: AnswerReader | undefined,
    resolve: (answer: Answer) => void
  ): Exchange => {
    const origins = reader === undefined ? delivering : streaming
    const connections = origins.acquire(url.origin)
    inFlight++
    const options: Dispatcher.DispatchOptions = {
      path: url.pathname + url.search,
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
        // It may still stand in the client's queue, where its body would wait along with it.
        options.body = null
        origins.release(connections)
        if (--inFlight === 0) onDrained?.()
        resolve(answer)
      }
    })
    connections.pool.dispatch(options, exchange)
    return exchange
  }

  /** Where to send it, or why nothing is sent. */
  const admit = (outbound: Outbound): URL | Answer => {
    if (closing) return refusal("NETWORK_REQUEST_CANCELED", "the gateway is shutting down")
    if (outbound.signal?.aborted === true) return refusal("NETWORK_REQUEST_CANCELED", "cancelled by the gateway")
    return parseUrl(outbound.url)
  }

  const deliverNow = (outbound: Outbound): Promise<Answer> =>
    new Promise((resolve) => {
      const url = admit(outbound)
      if (url instanceof URL) send(outbound, url, undefined, resolve)
      else resolve(url)
    })

  /**
   * Why a target must not be told to fetch a URL; null when it may. Whoever fetches it looks the name up again: what is kept from
   * tenants by this is to have somebody reach for the operator's networks, or for those of the target.
   */
  const refusalOf = async (text: string): Promise<Answer | null> => {
    const url = parseUrl(text)
    if (!(url instanceof URL)) return url
    const refused = await guard.refusalOf(url.hostname.replace(/^\[(.*)\]$/, "$1"))
    return refused === null ? null : refusal(refused.code, refused.message)
  }

  /** What is looked up for it counts in its time, and ends with it. Whoever answers too late is not waited for. */
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
    // Later, so that it is never called before this returns.
    const end = (answer: Answer): void => queueMicrotask(() => reader.onEnd(answer))
    const url = admit(outbound)
    if (url instanceof URL) return send(outbound, url, reader, end)
    end(url)
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
    await Promise.all([delivering.destroy(), streaming.destroy()])
  }

  return { guard, deliver, stream, openOrigins: () => delivering.size() + streaming.size(), close }
}

/**
 * The gateway's only way out: every outbound HTTP request is made by `deliver` or `stream`, every other outbound socket is
 * opened by `guard`; a test of this package reads all sources to keep it so.
 */
export class Egress extends Context.Service<
  Egress,
  {
    /**
     * Sends one HTTP/1.1 request and tells how it ended. Never rejects.
     *
     * - Redirects are not followed: a 3xx is an answer like any other.
     * - The answer counts as received once its body is complete or exceeds `captureBytes`; then the rest is abandoned with
     *   its connection, so that a target that never ends its body costs no more than one that ends it at the limit. A body
     *   that stays within the limit but does not end in time is TIMEOUT.
     * - One budget covers everything, waiting for a free connection included.
     * - Nothing is sent twice: a connection that the target closes as it is reused ends as SOCKET_CLOSED or
     *   CONNECTION_RESET, because the request may have had its effect; whether to repeat it is up to the retry rule.
     * - A target that says "100 Continue" unasked is PROTOCOL_ERROR (the HTTP client's limit); other 1xx are passed over, as far as they are few.
     *
     * It runs outside Effect, since it is called for every delivery. In an effect:
     * `Effect.promise((signal) => egress.deliver({ ...outbound, signal }))`.
     */
    readonly deliver: (outbound: Outbound) => Promise<Answer>
    /**
     * Like `deliver`, but hands the answer on as it comes, of whatever length. `captureBytes` of it are kept besides.
     *
     * - `timeoutMs` is for the time until the headers are there, waiting for a connection included; after them it is how long
     *   the target may be silent. While the reader holds it up, no time runs: how long that may last is up to the caller.
     * - An answer that breaks off is an error, also where its body would have ended with the connection and that was reset.
     * - What a reader throws ends the exchange (UNKNOWN).
     * - `signal` and `mayStart` mean what they mean for `deliver`.
     */
    readonly stream: (outbound: Outbound, reader: AnswerReader) => Streaming
    readonly guard: Guard
    /** How many origins hold connections or memory now, in use or idle. */
    readonly openOrigins: () => number
  }
>()("@tidegate/egress/Egress") {
  /** Closing the scope lets what is in flight finish (at most `drainMs`) and closes every connection. */
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
