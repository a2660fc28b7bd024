import { Clock, Effect } from "effect"
import type { SqlError } from "effect/sql"
import type { Egress } from "@tidegate/egress/Egress"
import { claimMessages, decideDueAlerts, nextAlertWork, recordMessage } from "@tidegate/storage/channels/AlertDelivery"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { looking, lookEveryMs } from "../Looking.ts"
import { MailServer } from "./MailServer.ts"
import { sendAlert } from "./SendAlert.ts"

/** The shortest time between two looks (ms). */
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
    return Math.min(Math.max((yield* nextAlertWork) ?? Infinity, at + soonestMs), at + lookEveryMs)
  })

export const layer = looking("AlertDelivery", deliverAlerts, "alerts could not be delivered; the next look goes on")
