import { Clock, Effect } from "effect"
import { Singleton } from "effect/cluster"
import type { SqlError } from "effect/sql"
import type { Egress } from "@tidegate/egress/Egress"
import { claimMessages, decideDueAlerts, nextAlertWork, recordMessage } from "@tidegate/storage/channels/AlertDelivery"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { MailServer } from "./MailServer.ts"
import { sendAlert } from "./SendAlert.ts"

/** The time between two looks (ms), if nothing is due earlier. New alerts are found by a look. */
const everyMs = 5_000
const soonestMs = 200
/** Messages that are sent at the same time: a chat that hangs delays only some. */
const sentAtOnce = 4

/**
 * Decides about the alerts that are due, and sends the messages that are due. Returns when to do it again (Unix ms). It may run in two
 * processes at once: alerts are locked and messages are claimed.
 */
export const deliverAlerts: Effect.Effect<number, SqlError.SqlError, Database | Egress | MailServer | Secrets> =
  Effect.gen(function* () {
    const server = yield* MailServer
    const now = yield* Clock.currentTimeMillis
    yield* decideDueAlerts(server !== null, now)
    yield* Effect.forEach(
      yield* claimMessages(now),
      (message) =>
        Effect.flatMap(sendAlert(message), (result) =>
          Effect.flatMap(Clock.currentTimeMillis, (at) => recordMessage(message, result, at))
        ),
      { concurrency: sentAtOnce, discard: true }
    )
    const at = yield* Clock.currentTimeMillis
    return Math.min(Math.max((yield* nextAlertWork) ?? Infinity, at + soonestMs), at + everyMs)
  })

/** Delivers alerts on one runner of the cluster. Its work is in SQL, so another runner goes on when it is lost. */
export const layer = Singleton.make(
  "AlertDelivery",
  Effect.forever(
    Effect.gen(function* () {
      const next = yield* Effect.catchCause(deliverAlerts, (cause) =>
        Effect.as(Effect.logWarning("alerts could not be delivered; the next look goes on", cause), null)
      )
      const now = yield* Clock.currentTimeMillis
      yield* Effect.sleep(next === null ? everyMs : Math.max(0, next - now))
    })
  )
)
