import type { Dispatcher } from "undici"
import { GatheredBytes } from "@tidegate/runtime/GatheredBytes"
import type { AttemptErrorCode } from "./AttemptErrorCode.ts"
import { errorCodeOf, errorMessageOf } from "./AttemptErrorCode.ts"
import { answerRead, bodyRead } from "./WireMeter.ts"

/** How one exchange with a target ended. */
export interface Answer {
  /** The status that was received; null if none was. Also set if the answer broke off afterwards, see `errorCode`. */
  readonly status: number | null
  /** Names in lower case; a header sent more than once is a list. */
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** As sent: `content-encoding` is not decoded. At most the capture limit. */
  readonly body: Buffer
  /** The target sent more than the capture limit. The rest was not read, and the exchange counts as answered. */
  readonly bodyTruncated: boolean
  /** Null if the target's answer is complete (whatever its status), else why it is not. */
  readonly errorCode: AttemptErrorCode | null
  readonly errorMessage: string | null
  /** Milliseconds since the epoch. */
  readonly sentAt: number
  /** When the outcome was known: `sentAt` plus the elapsed time, so a change of the wall clock does not distort it. */
  readonly respondedAt: number
}

const noHeaders: Answer["headers"] = {}

/** Thrown into the HTTP client to drop a request that ended while it waited for a connection; nothing reads it. */
const dropped = new Error("the exchange has ended")

/** 1xx answers before the final one: each is a few bytes, but costs as much as an answer. */
const maxInterim = 32

/** Receives an answer as it arrives. */
export interface AnswerReader {
  /** Called once, before any byte of the body: the final status, and the headers in the form of `Answer`. */
  readonly onHeaders: (status: number, headers: Answer["headers"]) => void
  /**
   * The next bytes of the body, as sent. Returning false pauses the target until `resume`; bytes that were already read from its connection
   * (at most about 128 KiB) may still be passed.
   */
  readonly onData: (chunk: Buffer) => boolean
  /** Called exactly once, as the last call. Its `body` holds the kept bytes; `bodyTruncated`: more bytes passed than were kept. */
  readonly onEnd: (answer: Answer) => void
}

export interface ExchangeOptions {
  readonly timeoutMs: number
  readonly captureBytes: number
  readonly signal: AbortSignal | undefined
  readonly mayStart: (() => boolean) | undefined
  /** Receives the answer as it arrives. Without a reader the answer is kept, and ends at the capture limit. */
  readonly reader: Omit<AnswerReader, "onEnd"> | undefined
  /** Called exactly once. */
  readonly onSettled: (answer: Answer) => void
}

/**
 * One request and its answer, as the HTTP client's handler. It settles exactly once: when the answer is complete, when it
 * exceeds the capture limit (without a reader), when the connection fails, at the timeout, or when the caller
 * cancels. The timeout is for the whole exchange; with a reader it is for the headers, and then for each pause of the target.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #options: ExchangeOptions
  readonly #sentAt = Date.now()
  readonly #startedAt = performance.now()
  readonly #timer: NodeJS.Timeout
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  #paused = false
  #truncated = false
  #interim = 0
  #status: number | null = null
  #headers: Answer["headers"] = noHeaders
  readonly #captured: GatheredBytes

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#captured = new GatheredBytes(options.captureBytes)
    // A native timer costs 0.2 µs to set and clear (0.8 µs with differing timeouts); a timer wheel of our own would be less exact.
    this.#timer = setTimeout(onTimeout, options.timeoutMs, this)
    options.signal?.addEventListener("abort", this.#onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // Thrown instead of aborted: an abort would also close the fresh connection.
    if (this.#options.mayStart?.() === false) this.#cancel("NETWORK_REQUEST_CANCELED", "no longer allowed to start")
    if (this.#settled) throw dropped
    this.#controller = controller
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Answer["headers"]): void {
    // 1xx: the final answer follows.
    if (status < 200) {
      if (++this.#interim > maxInterim) this.#cancel("PROTOCOL_ERROR", `more than ${maxInterim} interim answers`)
      return
    }
    this.#status = status
    this.#headers = headers
    const reader = this.#options.reader
    if (reader === undefined || this.#settled) return
    this.#timer.refresh()
    reader.onHeaders(status, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    bodyRead(chunk.length)
    // The parser may pass an empty chunk when it resumes.
    if (this.#settled || chunk.length === 0) return
    const { reader } = this.#options
    if (!this.#truncated && !this.#captured.add(chunk)) this.#truncated = true
    if (reader !== undefined) {
      this.#timer.refresh()
      if (reader.onData(chunk) || this.#settled) return
      this.#paused = true
      controller.pause()
    } else if (this.#truncated) {
      this.#settle(null, null)
      controller.abort(dropped)
    }
  }

  onResponseEnd(): void {
    answerRead()
    if (this.#settled) return
    const answer = this.#conclude(null, null)
    // Reported one event-loop iteration later, when the client has its connection back. Otherwise a caller that starts its next exchange
    // at once finds the connection in use and opens a second one (twice as many connections, measured).
    queueMicrotask(() => setImmediate(this.#options.onSettled, answer))
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#settled) return
    this.#settle(errorCodeOf(error, this.#status !== null), errorMessageOf(error))
  }

  /** The reader accepts more. Must not be called from inside one of its methods. */
  resume(): void {
    if (!this.#paused || this.#settled) return
    this.#paused = false
    this.#timer.refresh()
    this.#controller?.resume()
  }

  /** Ends the exchange on the caller's request; no effect if it has ended. */
  cancel(message: string): void {
    this.#cancel("NETWORK_REQUEST_CANCELED", message)
  }

  /** Called by the timer. */
  expire(): void {
    const { reader, timeoutMs } = this.#options
    // The target is silent because the reader has paused it.
    if (this.#paused) this.#timer.refresh()
    else if (reader === undefined) this.#cancel("TIMEOUT", `no full answer within ${timeoutMs} ms`)
    else if (this.#status === null) this.#cancel("TIMEOUT", `no answer within ${timeoutMs} ms`)
    else this.#cancel("TIMEOUT", `no more of the answer within ${timeoutMs} ms`)
  }

  readonly #onAbort = (): void => this.cancel("cancelled by the gateway")

  #cancel(code: AttemptErrorCode, message: string): void {
    if (this.#settled) return
    this.#settle(code, message)
    // Without a controller the request still waits for a connection: `onRequestStart` drops it.
    this.#controller?.abort(dropped)
  }

  #settle(errorCode: AttemptErrorCode | null, errorMessage: string | null): void {
    this.#options.onSettled(this.#conclude(errorCode, errorMessage))
  }

  #conclude(errorCode: AttemptErrorCode | null, errorMessage: string | null): Answer {
    this.#settled = true
    clearTimeout(this.#timer)
    this.#options.signal?.removeEventListener("abort", this.#onAbort)
    return {
      status: this.#status,
      headers: this.#headers,
      body: this.#captured.take(),
      bodyTruncated: this.#truncated,
      errorCode,
      errorMessage,
      sentAt: this.#sentAt,
      respondedAt: this.#sentAt + Math.round(performance.now() - this.#startedAt)
    }
  }
}

const onTimeout = (exchange: Exchange): void => exchange.expire()
