import { answerOf, type Answer, refused } from "./LocalTarget.ts"
import { type ConnectionChange, type SocketOptions, stayConnected } from "./Socket.ts"

/** What is delivered through a tunnel: one attempt of an event. */
export interface Delivery {
  /** The same for one attempt of an event, also when it is sent again over another connection. */
  readonly job_id: string
  readonly timeout_ms: number
  readonly request: {
    readonly event_id: string
    /** The stored payload that this is: the request's, or what a transformation made of it. */
    readonly event_data_id: string
    readonly request_id: string
    readonly connection_id: string
    readonly attempt_number: number
    readonly method: string
    /** Appended to the local URL; with its query. */
    readonly path: string
    readonly headers: Readonly<Record<string, string | ReadonlyArray<string>>>
    readonly body?: string
    readonly body_base64?: string
  }
}

export type TunnelEvent =
  | ConnectionChange
  /** The tunnel is open: events come from here on. */
  | { readonly type: "ready"; readonly cliId: string }
  /** The local app has answered, or could not (then `error` says why, and `status` is 502). */
  | {
      readonly type: "delivered"
      readonly delivery: Delivery
      readonly status: number
      readonly error: string | null
      readonly tookMs: number
    }

export interface TunnelOptions extends SocketOptions {
  /** A destination of type CLI. */
  readonly destinationId: string
  /** Where deliveries go: http or https on this machine (`localhost`, 127.0.0.0/8 or `[::1]`); a path may follow. */
  readonly localUrl: string
  /** Deliveries under way at once, at most 50; further ones wait their turn. */
  readonly maxParallel?: number
  /** How long the local app may take (ms), at most as long as the gateway waits, which is what holds without it. */
  readonly timeoutMs?: number
  readonly onEvent?: (event: TunnelEvent) => void
}

const defaultParallel = 50
/** Deliveries that wait for a place. The gateway has fewer under way: more is its mistake. */
const maxWaiting = 1_000
/** Where the gateway does not say how long it waits. */
const usualTimeoutMs = 30_000
/**
 * The latest answers, which are kept because nobody knows of one whether it was heard when the connection broke. What the
 * gateway asks for again is told again, and the app is not asked twice.
 */
const maxAnswered = 200

/** Wrong credential, not allowed, no such destination, another listener has taken over. */
const final: ReadonlySet<number> = new Set([4401, 4403, 4404, 4409])

const isLocal = (host: string): boolean => host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host)

/** The URL that deliveries are appended to. Throws unless it is of this machine: a tunnel is no way into a network. */
export const localTarget = (url: string): URL => {
  const target = URL.parse(url)
  if (target === null || !/^https?:$/.test(target.protocol) || !isLocal(target.hostname)) {
    throw new TypeError("the local URL must be http or https on localhost, 127.0.0.1 or [::1]")
  }
  if (target.username !== "" || target.search !== "" || target.hash !== "") {
    throw new TypeError("the local URL must have no credentials, query or fragment")
  }
  return target
}

const isDelivery = (message: unknown): message is Delivery => {
  const { job_id, request, type } = message as {
    type?: unknown
    job_id?: unknown
    request?: Partial<Delivery["request"]>
  }
  return (
    type === "delivery" &&
    typeof job_id === "string" &&
    typeof request?.path === "string" &&
    typeof request.method === "string" &&
    typeof request.headers === "object" &&
    request.headers !== null
  )
}

/**
 * Delivers the events of a destination of type CLI to an app on this machine, until `signal` ends it, when this resolves, or
 * it is over for good, when it rejects with a `ConnectionEndedError`. Whenever the connection breaks it is opened again; what
 * the gateway has not heard of it sends again. Then the answer that is there is told, and the app is not asked twice.
 */
export const openTunnel = async ({
  destinationId,
  localUrl,
  maxParallel = defaultParallel,
  onEvent = () => undefined,
  timeoutMs = Infinity,
  ...socket
}: TunnelOptions): Promise<void> => {
  const target = localTarget(localUrl)
  const parallel = Math.max(1, Math.min(maxParallel, defaultParallel))
  /** How the gateway is told now; null while nobody listens. */
  let tell: ((message: object) => void) | null = null
  let running = 0
  const waiting: Array<Delivery> = []
  const underWay = new Set<string>()
  const answered = new Map<string, object>()

  const finish = (delivery: Delivery, { error, ...answer }: Answer, startedAt: number): void => {
    const { job_id } = delivery
    const result = { type: "delivery_result", job_id, ...answer, ...(error === null ? {} : { error }) }
    underWay.delete(job_id)
    answered.set(job_id, result)
    for (const [oldest] of answered) if (answered.size > maxAnswered) answered.delete(oldest)
    tell?.(result)
    onEvent({ type: "delivered", delivery, status: answer.status, error, tookMs: Date.now() - startedAt })
  }

  const work = (): void => {
    while (running < parallel && waiting.length > 0) {
      const delivery = waiting.shift()!
      const startedAt = Date.now()
      const waits = typeof delivery.timeout_ms === "number" ? delivery.timeout_ms : usualTimeoutMs
      const allowed = Math.min(waits, timeoutMs)
      running++
      void answerOf(target, delivery.request, allowed, socket.signal)
        .then((answer) => finish(delivery, answer, startedAt))
        .finally(() => {
          running--
          work()
        })
    }
  }

  const take = (delivery: Delivery, send: (message: object) => void): void => {
    const { job_id } = delivery
    const known = answered.get(job_id)
    if (known !== undefined) return send(known)
    // Under way since before the connection broke: its answer goes by this one.
    if (underWay.has(job_id)) return
    underWay.add(job_id)
    if (waiting.length >= maxWaiting) return finish(delivery, refused("too many deliveries are under way"), Date.now())
    waiting.push(delivery)
    work()
  }

  await stayConnected({
    ...socket,
    path: `/connect?${new URLSearchParams({ destination_id: destinationId, local_url: target.href })}`,
    protocol: "tunnel.v1",
    final,
    heartbeatMs: 30_000,
    onChange: (change) => {
      if (change.type === "disconnected") tell = null
      onEvent(change)
    },
    onMessage: (message, send) => {
      if (typeof message !== "object" || message === null) return
      tell = send
      if (isDelivery(message)) return take(message, send)
      const { cli_id, type } = message as { readonly type?: unknown; readonly cli_id?: unknown }
      if (type === "hello") onEvent({ type: "ready", cliId: String(cli_id) })
    }
  })
}
