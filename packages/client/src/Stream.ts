import type { components } from "./schema.ts"
import { type ConnectionChange, type SocketOptions, stayConnected } from "./Socket.ts"

export interface StreamOptions extends SocketOptions {
  /** A source, or a public bin. */
  readonly sourceId: string
  readonly onRequest: (request: components["schemas"]["CapturedRequest"]) => void
  /** More came than a stream tells, or it may have while the connection was lost: the lists have them all. */
  readonly onSkipped?: () => void
  readonly onChange?: (change: ConnectionChange) => void
}

const final: ReadonlySet<number> = new Set([4401, 4403, 4404, 4410])

/** The gateway says every 30 s that it is there. */
const longestSilenceMs = 75_000

/** Tells of a source's requests as they come, until `signal` ends it, or it is over for good (`ConnectionEndedError`). */
export const streamRequests = ({ onChange, onRequest, onSkipped, sourceId, ...rest }: StreamOptions): Promise<void> => {
  let wasConnected = false
  return stayConnected({
    ...rest,
    path: `/bins/${encodeURIComponent(sourceId)}/stream`,
    protocol: "bin.v1",
    final,
    // Who says something on a stream is sent away; the gateway looks after it.
    heartbeatMs: null,
    longestSilenceMs,
    onChange: (change) => {
      onChange?.(change)
      if (change.type !== "connected") return
      if (wasConnected) onSkipped?.()
      wasConnected = true
    },
    onMessage: (message) => {
      const { request, type } = message as { readonly type?: unknown; readonly request?: never }
      if (type === "request" && request !== undefined) onRequest(request)
      else if (type === "skipped") onSkipped?.()
    }
  })
}
