import type { components } from "./schema.ts"
import { type ConnectionChange, type SocketOptions, stayConnected } from "./Socket.ts"

export interface StreamOptions extends SocketOptions {
  /** A source, or a public bin. */
  readonly sourceId: string
  readonly onRequest: (request: components["schemas"]["CapturedRequest"]) => void
  /**
   * Some requests were not shown: more arrived than a stream sends, or some arrived while the connection was lost. The lists
   * contain all of them.
   */
  readonly onSkipped?: () => void
  readonly onChange?: (change: ConnectionChange) => void
}

const final: ReadonlySet<number> = new Set([4401, 4403, 4404, 4410])

/** The gateway sends an `alive` message every 30 s. */
const longestSilenceMs = 75_000

/**
 * Passes a source's requests to `onRequest` as they arrive, until `signal` ends it. Rejects with a `ConnectionEndedError` when
 * the stream has ended for good.
 */
export const streamRequests = ({ onChange, onRequest, onSkipped, sourceId, ...rest }: StreamOptions): Promise<void> => {
  let wasConnected = false
  return stayConnected({
    ...rest,
    path: `/bins/${encodeURIComponent(sourceId)}/stream`,
    protocol: "bin.v1",
    final,
    // The gateway closes a stream whose client sends messages, so no pings are sent. The gateway itself checks the connection.
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
