export interface RetryOptions {
  /** How often a call is repeated after the first attempt; 0: never. */
  readonly retries: number
  /** The longest wait (ms) before a retry. If the gateway asks for a longer one, the call fails with the gateway's answer. */
  readonly longestWaitMs: number
  /** How long (ms) each attempt may take. */
  readonly timeoutMs: number
}

/**
 * Methods that are safe to repeat. If a call got no answer, it may have been done: a create would be done twice, and a delete
 * would find nothing. A call with 429 was certainly not done, so it may always be repeated.
 */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "PATCH"])

/** A successful change of the team's keys ends the key that made the call, so a repeated call would be refused. */
const isRepeatable = ({ method, url }: Request): boolean =>
  repeatable.has(method) && !(method === "PUT" && new URL(url).pathname.endsWith("/project-secrets"))

/** A longer timer would fire at once. */
const longestTimerMs = 2 ** 31 - 1

const isWorthAnother = (request: Request, status: number): boolean =>
  status === 429 || ((status === 502 || status === 503 || status === 504) && isRepeatable(request))

/** The milliseconds of a `Retry-After` header; null: missing or unreadable. */
export const retryAfter = (header: string | null, now: number): number | null => {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/**
 * A quarter of a second, doubled for each attempt. Up to half of it is taken off at random, so that callers do not return
 * together.
 */
const backoff = (attempt: number): number => 250 * 2 ** attempt * (0.5 + Math.random() / 2)

export const sleep = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop)
      resolve()
    }, milliseconds)
    signal.addEventListener("abort", stop, { once: true })
    if (signal.aborted) stop()
  })

/**
 * Returns a `fetch` that repeats a call when that is safe and may help. A call that the caller's own signal has ended is not
 * repeated.
 */
export const retrying =
  (fetch: (request: Request) => Promise<Response>, { longestWaitMs, retries, timeoutMs }: RetryOptions) =>
  async (request: Request): Promise<Response> => {
    for (let attempt = 0; ; attempt++) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)])
      const isLast = attempt >= retries
      try {
        const response = await fetch(new Request(isLast ? request : request.clone(), { signal }))
        if (isLast || !isWorthAnother(request, response.status)) return response
        const wait = retryAfter(response.headers.get("retry-after"), Date.now()) ?? backoff(attempt)
        if (wait > Math.min(longestWaitMs, longestTimerMs)) return response
        // The body is cancelled and not awaited: a stream may never report its end.
        response.body?.cancel().catch(() => undefined)
        await sleep(wait, request.signal)
      } catch (cause) {
        if (isLast || request.signal.aborted || !isRepeatable(request)) throw cause
        await sleep(Math.min(backoff(attempt), longestWaitMs), request.signal)
      }
    }
  }
