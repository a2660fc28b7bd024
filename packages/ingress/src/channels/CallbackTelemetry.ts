import { Clock, Effect } from "effect"
import { metrics } from "@tidegate/telemetry/Metrics"
import { LineLimits, WideLines } from "@tidegate/telemetry/WideLines"
import type { Notification } from "@tidegate/channels/Adapter"
import type { CalledSubscription } from "@tidegate/storage/channels/Notifications"

export type CallbackTelemetry = Effect.Success<ReturnType<typeof CallbackTelemetry.make>>

/** Results of callbacks that no subscription takes. */
type Refused = "unknown" | "ended" | "method" | "too_large" | "busy" | "shed" | "failed"

/** What is counted and logged of callbacks. The URL is in no line, because it contains the token. */
export const CallbackTelemetry = {
  make: Effect.fnUntraced(function* () {
    const clock = yield* Clock.Clock
    const run = Effect.runForkWith(yield* Effect.context())
    const lines = new WideLines("callback", yield* LineLimits)

    return {
      refused: (outcome: Refused): void => metrics.callbacks.at(outcome).add(),

      /** It is answered as its adapter says. */
      taken: (called: CalledSubscription, notification: Notification, receivedAt: number): void => {
        const { kind } = notification
        const isRefused = kind === "rejected" || (kind === "handshake" && !notification.accepted)
        metrics.callbacks.at(isRefused ? "rejected" : kind).add()
        const at = clock.currentTimeMillisUnsafe()
        lines.write(run, isRefused, at, () => ({
          outcome: kind,
          accepted: !isRefused,
          team_id: called.team_id,
          source_id: called.source_id,
          subscription_id: called.id,
          adapter: called.adapter,
          items: kind === "items" ? notification.items.length : 0,
          duration_ms: at - receivedAt
        }))
      }
    }
  })
}
