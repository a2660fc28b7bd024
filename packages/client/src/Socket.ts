import type { Json } from "./Client.ts"
import { sleep } from "./Retry.ts"

/** Where a WebSocket of the gateway is opened, and as whom. */
export interface SocketOptions {
  /** The gateway's origin, such as `https://hooks.example.com`; a path before `/v1` may follow. */
  readonly baseUrl: string
  /** An API key, or the token of a session. */
  readonly key: string
  /** The team to act on, where it is not the key's own. */
  readonly team?: string
  /** Ends it, cleanly. */
  readonly signal?: AbortSignal
  /** How what comes is read: by `JSON`, unless told. */
  readonly json?: Pick<Json, "parse">
}

/** A connection that is over for good: opened again it would end in the same way. */
export class ConnectionEndedError extends Error {
  override readonly name = "ConnectionEndedError"
  /** The close code, such as 4401. */
  readonly code: number

  constructor(code: number, reason: string) {
    super(reason === "" ? `the gateway has ended the connection (${code})` : reason)
    this.code = code
  }
}

/** What is told of a connection that is kept up. */
export type ConnectionChange =
  | { readonly type: "connected" }
  /** `code`: how it ended, 1006 where nobody said; it is tried again after `retryInMs`. */
  | { readonly type: "disconnected"; readonly code: number; readonly reason: string; readonly retryInMs: number }

interface Kept extends SocketOptions {
  /** Below `/v1`, with its query. */
  readonly path: string
  readonly protocol: string
  /** Codes after which it is not opened again. */
  readonly final: ReadonlySet<number>
  /** Called for each text that came, parsed; `send` goes to the connection it came by. */
  readonly onMessage: (message: unknown, send: (message: object) => void) => void
  readonly onChange?: (change: ConnectionChange) => void
  /** How often a sign of life is asked for; null for never. */
  readonly heartbeatMs: number | null
  /** After which it is taken for dead, where the other side says by itself that it is `alive`: an older gateway does not. */
  readonly longestSilenceMs?: number
}

const firstWaitMs = 500
const longestWaitMs = 10_000
/** A connection that does not come about by then is given up. */
const openingMs = 15_000
/** How often it is looked whether one to whom nothing is said has gone silent. */
const watchingMs = 5_000
/** More than any frame of a gateway: a body of 10 MiB in base64, and what stands around it. */
const longestFrame = 32 * 1024 * 1024

/** 0.5 s, twice as long each time, at most 10 s; by up to a half less, so that clients of a restarted gateway do not come together. */
const waitBefore = (attempt: number): number =>
  Math.min(longestWaitMs, firstWaitMs * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2)

const base64url = (text: string): string =>
  btoa(String.fromCharCode(...new TextEncoder().encode(text)))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "")

interface End {
  readonly code: number
  readonly reason: string
  /** Whether the gateway has said something on it. */
  readonly wasGreeted: boolean
}

/** One connection, to its end. */
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
    // A platform's WebSocket cannot set headers: who it is goes by the subprotocols.
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
      // Nobody waits for the other side's goodbye.
      end(code, reason)
    }
    const send = (message: object): void => {
      if (socket.readyState === socket.OPEN) socket.send(JSON.stringify(message))
    }
    const stop = (): void => drop(1000, "")
    const opening = setTimeout(() => drop(1006, "the gateway did not answer"), openingMs)
    /** Infinite until it is known that the other side is heard of regularly. */
    let patience = heartbeatMs === null ? Infinity : heartbeatMs * 2.5
    // One that is silently gone is told by what does not come back.
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
 * Keeps a WebSocket up until `signal` ends it, when this resolves, or the gateway says that it is over for good, when it
 * rejects with a `ConnectionEndedError`.
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
