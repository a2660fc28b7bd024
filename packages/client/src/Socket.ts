import type { Json } from "./Client.ts"
import { sleep } from "./Retry.ts"

/** The gateway to which a WebSocket is opened, and the credential. */
export interface SocketOptions {
  /** The gateway's origin, such as `https://hooks.example.com`; a path before `/v1` may follow. */
  readonly baseUrl: string
  /** An API key, or the token of a session. */
  readonly key: string
  /** The team to act on, if it is not the key's own team. */
  readonly team?: string
  /** Closes the connection cleanly. */
  readonly signal?: AbortSignal
  /** Parses messages (default: `JSON`). */
  readonly json?: Pick<Json, "parse">
}

/** The connection has ended for good: another one would end in the same way. */
export class ConnectionEndedError extends Error {
  override readonly name = "ConnectionEndedError"
  /** The close code, such as 4401. */
  readonly code: number

  constructor(code: number, reason: string) {
    super(reason === "" ? `the gateway has ended the connection (${code})` : reason)
    this.code = code
  }
}

/** The state changes of a connection that is kept open. */
export type ConnectionChange =
  | { readonly type: "connected" }
  /** `code`: the close code, 1006 if there was none. The next attempt follows after `retryInMs`. */
  | { readonly type: "disconnected"; readonly code: number; readonly reason: string; readonly retryInMs: number }

interface Kept extends SocketOptions {
  /** Below `/v1`, with its query. */
  readonly path: string
  readonly protocol: string
  /** Close codes after which the connection is not opened again. */
  readonly final: ReadonlySet<number>
  /** Called for each text message, parsed. `send` sends on the connection that the message came from. */
  readonly onMessage: (message: unknown, send: (message: object) => void) => void
  readonly onChange?: (change: ConnectionChange) => void
  /** The interval (ms) of the client's own pings; null: none. */
  readonly heartbeatMs: number | null
  /**
   * The silence (ms) after which the connection counts as dead. Used only after the gateway has sent an `alive` message, because
   * older gateways do not send any.
   */
  readonly longestSilenceMs?: number
}

const firstWaitMs = 500
const longestWaitMs = 10_000
/** A connection that is not open after this time (ms) is given up. */
const openingMs = 15_000
/** How often (ms) a connection without own pings is checked for silence. */
const watchingMs = 5_000
/** Characters. More than any frame of a gateway: a body of 10 MiB in base64, and the text around it. */
const longestFrame = 32 * 1024 * 1024

/**
 * 0.5 s, doubled for each attempt, at most 10 s. Up to half of it is taken off at random, so that the clients of a restarted
 * gateway do not come together.
 */
export const waitBefore = (attempt: number): number =>
  Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2)

const base64url = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

interface End {
  readonly code: number
  readonly reason: string
  /** Whether the gateway has sent a message on it. */
  readonly wasGreeted: boolean
}

/** One connection; resolves with its end. */
const connection = ({
  baseUrl,
  heartbeatMs,
  json = JSON,
  key,
  longestSilenceMs,
  onChange,
  onMessage,
  path,
  protocol,
  signal,
  team
}: Kept) =>
  new Promise<End>((resolve) => {
    const url = `${baseUrl.replace(/\/+$/, "").replace(/^http/, "ws")}/v1${path}`
    // A platform's WebSocket cannot set headers, so the subprotocols carry the credentials.
    const who = [`token.${base64url(key)}`, ...(team === undefined ? [] : [`team.${base64url(team)}`])]
    const socket = new WebSocket(url, [protocol, ...who])
    let wasGreeted = false
    let isOver = false
    let heard = Date.now()

    const end = (code: number, reason: string): void => {
      if (isOver) return
      isOver = true
      clearTimeout(opening)
      clearInterval(beating)
      signal?.removeEventListener("abort", stop)
      resolve({ code, reason, wasGreeted })
    }
    const drop = (code: number, reason: string): void => {
      socket.close(code < 3000 && code !== 1000 ? 3000 : code, reason)
      // The other side's close message is not awaited.
      end(code, reason)
    }
    const send = (message: object): void => {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message))
    }
    const stop = (): void => drop(1000, "")
    const opening = setTimeout(() => drop(1006, "the gateway did not answer"), openingMs)
    /** The longest silence (ms). Infinite until it is known that the other side sends messages regularly. */
    let patience = heartbeatMs === null ? Infinity : heartbeatMs * 2.5
    // A connection that broke silently is detected by missing messages.
    const beating = setInterval(() => {
      if (socket.readyState !== socket.OPEN) return
      if (Date.now() - heard > patience) drop(1006, "the gateway went silent")
      else if (heartbeatMs !== null) send({ type: "ping" })
    }, heartbeatMs ?? watchingMs)

    socket.addEventListener("open", () => clearTimeout(opening))
    socket.addEventListener("message", ({ data }) => {
      if (isOver || typeof data !== "string") return
      if (data.length > longestFrame) return drop(3009, "a frame is too large")
      heard = Date.now()
      let message: unknown
      try {
        message = json.parse(data)
      } catch {
        return drop(3007, "a frame is no JSON")
      }
      if (!wasGreeted) {
        wasGreeted = true
        onChange?.({ type: "connected" })
      }
      if (longestSilenceMs !== undefined && (message as { type?: unknown } | null)?.type === "alive") {
        patience = longestSilenceMs
      }
      onMessage(message, send)
    })
    socket.addEventListener("close", ({ code, reason }) => end(code, reason))
    socket.addEventListener("error", () => undefined)
    signal?.addEventListener("abort", stop, { once: true })
    if (signal?.aborted === true) stop()
  })

/**
 * Keeps a WebSocket open. Resolves when `signal` ends it. Rejects with a `ConnectionEndedError` when the gateway has ended it for
 * good.
 */
export const stayConnected = async (kept: Kept): Promise<void> => {
  const { final, onChange, signal = new AbortController().signal } = kept
  const isEnded = (): boolean => signal.aborted
  for (let attempt = 0; !isEnded(); attempt++) {
    const { code, reason, wasGreeted } = await connection(kept)
    if (isEnded()) return
    if (final.has(code)) throw new ConnectionEndedError(code, reason)
    if (wasGreeted) attempt = 0
    const retryInMs = waitBefore(attempt)
    onChange?.({ type: "disconnected", code, reason, retryInMs })
    await sleep(retryInMs, signal).catch(() => undefined)
  }
}
