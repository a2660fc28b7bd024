import type { Delivery } from "./Delivery.ts"
import { answerOf, type Answer, refused } from "./LocalTarget.ts"
import { type ConnectionChange, type SocketOptions, stayConnected } from "./Socket.ts"

export type TunnelEvent =
  | ConnectionChange
  /** The tunnel is open: events arrive from now on. */
  | { readonly type: "ready"; readonly cliId: string }
  /** The local app has answered, or could not answer (then `error` has the cause, and `status` is 502). */
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
  /** Deliveries under way at once, at most 50 (default: 50). Further ones wait. */
  readonly maxParallel?: number
  /** How long (ms) the local app may take. Default and upper limit: the time that the gateway waits. */
  readonly timeoutMs?: number
  readonly onEvent?: (event: TunnelEvent) => void
}

const defaultParallel = 50
/** Waiting deliveries. The gateway has fewer under way, so more would be a fault of the gateway. */
const maxWaiting = 1_000
/** The time limit (ms) if the gateway does not send one. */
const usualTimeoutMs = 30_000
/**
 * The number of latest answers that are kept. When a connection breaks, it is unknown whether the gateway has received an answer.
 * If the gateway sends the delivery again, the kept answer is sent, and the app is not called twice.
 */
const maxAnswered = 200

/** Wrong credential, not allowed, no such destination, another listener has taken over. */
const final: ReadonlySet<number> = new Set([4401, 4403, 4404, 4409])

const isLocal = (host: string): boolean => host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host)

/**
 * The URL to which the path of a delivery is appended. Throws if it is not on this machine, because a tunnel must not give access
 * to a network.
 */
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
 * Delivers the events of a destination of type CLI to an app on this machine. Resolves when `signal` ends it. Rejects with a
 * `ConnectionEndedError` when the connection has ended for good. A broken connection is opened again. The gateway then repeats
 * the deliveries whose answer it has not received: if the app has answered already, the kept answer is sent, and the app is not
 * called twice.
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
  /** Sends a message to the gateway; null while there is no connection. */
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
    // Under way since before the connection broke: its answer is sent over the new one.
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
