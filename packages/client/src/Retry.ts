export interface RetryOptions {
  /** How often a call is made again after the first time; 0 for never. */
  readonly retries: number
  /** How long a wait may be. Where the gateway asks for more, the call fails with what it was answered. */
  readonly longestWaitMs: number
  /** How long each try may take. */
  readonly timeoutMs: number
}

/**
 * What may be made twice. Of a call that got no answer nobody knows whether it was done: a create would be done again, and a delete
 * would find nothing. Of 429 it is known that nothing was done.
 */
const repeatable: ReadonlySet<string> = new Set(["GET", "HEAD", "PUT", "PATCH"])

/** A change of the team's keys that was done ends the key that it was asked with: asked again, it would be refused. */
const isRepeatable = ({ method, url }: Request): boolean =>
  repeatable.has(method) && !(method === "PUT" && new URL(url).pathname.endsWith("/project-secrets"))

/** A longer timer would fire at once. */
const longestTimerMs = 2 ** 31 - 1

const isWorthAnother = (request: Request, status: number): boolean =>
  status === 429 || ((status === 502 || status === 503 || status === 504) && isRepeatable(request))

/** The milliseconds of a `Retry-After`; null where there is none that can be read. */
export const retryAfter = (header: string | null, now: number): number | null => {
  if (header === null) return null
  if (/^\d+$/.test(header)) return Number(header) * 1_000
  const at = Date.parse(header)
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}

/** A quarter of a second, then twice as long each time, by up to a half less, so that callers do not come back together. */
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

/** A `fetch` that makes a call again where that is safe and may help. What the caller's own signal ends is not made again. */
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
        // Nobody waits for what is not read: a stream may never say that it has ended.
        response.body?.cancel().catch(() => undefined)
        await sleep(wait, request.signal)
      } catch (cause) {
        if (isLast || request.signal.aborted || !isRepeatable(request)) throw cause
        await sleep(Math.min(backoff(attempt), longestWaitMs), request.signal)
      }
    }
  }
