import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import {
  decideAlert,
  type Decided,
  type Delivering,
  type Earlier,
  type MessageKind,
  type Transport
} from "@tidegate/channels/alerts/AlertDecision"
import { maskedAddress, type ToldAlert } from "@tidegate/channels/alerts/AlertText"
import { dayMs, minuteMs } from "@tidegate/channels/machine/Times"
import { channelSettingsDefaults } from "@tidegate/model/ChannelAlert"
import { newId, prefixes } from "@tidegate/model/Ids"
import * as Columns from "../journal/Columns.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { chatUrlOf } from "./AlertSettings.ts"
import { count } from "./ChannelMetrics.ts"

/*
 * The messages about alerts: an outbox. A message is decided in the transaction that moves the alert's `notify_at` on, claimed before it is
 * sent, and recorded after. A process that is killed in between leaves it claimed for some time; then it is sent again, with the same
 * Message-ID.
 */

const keptMs = 30 * dayMs
/** Messages about alerts of one team that are decided within this time (ms) are one. */
const groupedMs = 30_000
/** How long a claim holds (ms): longer than sending takes. */
const claimedMs = 2 * minuteMs
const decidedAtOnce = 100
const claimedAtOnce = 16
/** Earlier messages that a decision looks at: more than an alert gets in the time for which they are kept. */
const maxEarlier = 200
/** The owners that are told when a team has set no recipients. */
const maxOwners = 10
/** Waits before a message is sent again (ms). After them it has failed. */
const retries = [5_000, minuteMs, 10 * minuteMs]
/** The longest wait that a chat may ask for (ms). */
const longestRetryAfterMs = 60 * minuteMs

interface Settings {
  readonly email_enabled: boolean
  readonly email_recipients: ReadonlyArray<string>
  readonly chat_enabled: boolean
  /** Encrypted. */
  readonly chat_webhook_url: string | null
  readonly cooldown_minutes: number
}

const defaults: Settings = { ...channelSettingsDefaults, chat_webhook_url: null }

interface DueAlert {
  readonly id: string
  readonly team_id: string
  readonly source_id: string
  readonly code: string
  readonly status: "active" | "resolved"
}

const settingsOf = Effect.fnUntraced(function* (team_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Settings>`
    select email_enabled, email_recipients, chat_enabled, chat_webhook_url, cooldown_minutes
    from channel_settings where team_id = ${team_id}`
  return row ?? defaults
})

/** The addresses that a team's alerts are sent to. An address that nobody has verified may be anybody's. */
const recipientsOf = Effect.fnUntraced(function* (team_id: string, { email_recipients }: Settings) {
  if (email_recipients.length > 0) return email_recipients
  const sql = yield* SqlClient.SqlClient
  const owners = yield* sql<{ email: string }>`
    select u.email from memberships m join users u on u.id = m.user_id
    where m.team_id = ${team_id} and m.role = 'owner' and u.email is not null and (u.email_verified or u.subject is null)
    order by m.created_at, u.id limit ${maxOwners}`
  return owners.map(({ email }) => email)
})

const earlierOf = Effect.fnUntraced(function* ({ code, id, source_id }: DueAlert) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Omit<Earlier, "at" | "isOwn"> & { readonly alert_id: string; readonly created_at: Date }>`
    select transport, kind, status, alert_id, created_at from channel_alert_deliveries
    where source_id = ${source_id} and code = ${code} order by id desc limit ${maxEarlier}`
  return rows.map(({ alert_id, created_at, kind, status, transport }): Earlier => ({
    transport,
    kind,
    status,
    isOwn: alert_id === id,
    at: created_at.getTime()
  }))
})

/** The settings that decide about the messages of one team. */
interface OfTeam {
  readonly settings: Settings
  readonly delivering: Delivering
  /** How the rows name whom the messages go to. */
  readonly shown: Readonly<Record<Transport, string>>
}

const ofTeam = Effect.fnUntraced(function* (team_id: string, isMailConfigured: boolean) {
  const settings = yield* settingsOf(team_id)
  const addresses = yield* recipientsOf(team_id, settings)
  const of: OfTeam = {
    settings,
    delivering: {
      email: { isEnabled: settings.email_enabled, isConfigured: isMailConfigured },
      chat: { isEnabled: settings.chat_enabled, isConfigured: settings.chat_webhook_url !== null },
      cooldownMs: settings.cooldown_minutes * minuteMs
    },
    shown: { email: addresses.map(maskedAddress).join(", "), chat: "chat webhook" }
  }
  return of
})

/** Decides about the alerts that are due, in one transaction. Returns how many there were. */
export const decideDueAlerts = Effect.fnUntraced(function* (
  isMailConfigured: boolean,
  now: number
): Effect.fn.Return<number, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* sql.withTransaction(
    Effect.gen(function* () {
      const alerts = yield* sql<DueAlert>`
        select id, team_id, source_id, code, status from channel_alerts
        where notify_at <= ${new Date(now)} order by notify_at limit ${decidedAtOnce} for update skip locked`
      const teams = new Map<string, OfTeam>()
      const waiting = new Map<string, Waiting>()
      const suppressed = new Map<string, { readonly team_id: string; alerts_suppressed: number }>()
      for (const alert of alerts) {
        const team = teams.get(alert.team_id) ?? (yield* ofTeam(alert.team_id, isMailConfigured))
        teams.set(alert.team_id, team)
        const { messages, notifyAt } = decideAlert(alert.status, yield* earlierOf(alert), team.delivering, now)
        for (const message of messages) {
          yield* keep(alert, message, team, waiting, now)
          if (message.outcome.status !== "suppressed") continue
          const { source_id, team_id } = alert
          const counted = suppressed.get(source_id) ?? { team_id, alerts_suppressed: 0 }
          suppressed.set(source_id, { team_id, alerts_suppressed: counted.alerts_suppressed + 1 })
        }
        const next = notifyAt === null ? null : new Date(notifyAt)
        yield* sql`update channel_alerts set notify_at = ${next} where id = ${alert.id}`
      }
      for (const [source, { team_id, ...counts }] of [...suppressed].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
        yield* count(team_id, source, counts, now)
      }
      return alerts.length
    })
  )
})

/** A message that waits for further alerts of its team. */
interface Waiting {
  readonly message_id: string
  readonly due_at: Date
}

/** The message that this one is sent in: the one that waits, or a new one. */
const messageOf = Effect.fnUntraced(function* (
  { team_id }: DueAlert,
  transport: Transport,
  waiting: Map<string, Waiting>,
  own: Waiting
) {
  const key = `${team_id} ${transport}`
  const known = waiting.get(key)
  if (known !== undefined) return known
  const sql = yield* SqlClient.SqlClient
  // One that is sent within a second is left alone: another process may be claiming it.
  const [found] = yield* sql<Waiting>`
    select message_id, due_at from channel_alert_deliveries
    where due_at > ${new Date(own.due_at.getTime() - groupedMs + 1_000)} and due_at <= ${own.due_at}
      and team_id = ${team_id} and transport = ${transport} and status = 'queued' and attempts = 0
    order by due_at limit 1 for update`
  const joined = found ?? own
  waiting.set(key, joined)
  return joined
})

/** Stores what was decided. */
const keep = Effect.fnUntraced(function* (
  alert: DueAlert,
  { kind, outcome, transport }: Decided,
  { shown }: OfTeam,
  waiting: Map<string, Waiting>,
  now: number
) {
  const sql = yield* SqlClient.SqlClient
  const id = newId(prefixes.alertDelivery, now)
  const own = { message_id: id, due_at: new Date(now + groupedMs) }
  const message = outcome.status === "queued" ? yield* messageOf(alert, transport, waiting, own) : null
  yield* sql`
    insert into channel_alert_deliveries (id, team_id, source_id, alert_id, code, kind, transport, recipient, status, message_id,
      error_code, suppressed_reason, due_at, created_at, expires_at)
    values (${id}, ${alert.team_id}, ${alert.source_id}, ${alert.id}, ${alert.code}, ${kind}, ${transport}, ${shown[transport]},
      ${outcome.status}, ${message?.message_id ?? null}, ${outcome.status === "failed" ? outcome.code : null},
      ${outcome.status === "suppressed" ? outcome.reason : null}, ${message?.due_at ?? null}, ${new Date(now)},
      ${new Date(now + keptMs)})`
})

/** A message to send now. */
export interface ClaimedMessage {
  readonly message_id: string
  readonly team_id: string
  readonly transport: Transport
  /** How often it has been sent, with this time. */
  readonly attempts: number
  /** The deliveries that it is. */
  readonly deliveries: ReadonlyArray<string>
  readonly alerts: ReadonlyArray<ToldAlert>
  /** Addresses, or the URL of the chat. Empty: there are none any more. */
  readonly to: ReadonlyArray<string>
  /** The first message about each of these alerts. */
  readonly references: ReadonlyArray<string>
}

interface ClaimedRow {
  readonly id: string
  readonly message_id: string
  readonly team_id: string
  readonly alert_id: string
  readonly transport: Transport
  readonly kind: MessageKind
  readonly attempts: number
}

/** Claims messages that are due, so that no other process sends them. */
export const claimMessages = Effect.fnUntraced(function* (
  now: number
): Effect.fn.Return<ReadonlyArray<ClaimedMessage>, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const rows = yield* sql<ClaimedRow>`
    update channel_alert_deliveries set due_at = ${new Date(now + claimedMs)}, attempts = attempts + 1
    where due_at <= ${at} and status = 'queued' and message_id = any(array(
      select message_id from channel_alert_deliveries where due_at <= ${at} and status = 'queued'
      group by message_id order by min(due_at) limit ${claimedAtOnce}
    ))
    returning id, message_id, team_id, alert_id, transport, kind, attempts`
  const messages = Map.groupBy(
    rows.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    ({ message_id }) => message_id
  )
  return yield* Effect.forEach(messages.values(), completed)
})

const completed = Effect.fnUntraced(function* (rows: ReadonlyArray<ClaimedRow>) {
  const sql = yield* SqlClient.SqlClient
  const [{ attempts, message_id, team_id, transport }] = rows as readonly [ClaimedRow]
  const ids = rows.map(({ alert_id }) => alert_id)
  const alerts = yield* sql<AlertRow>`
    select a.id, a.code, coalesce(s.name, a.source_id) as source_name, a.message, a.occurrences, a.first_seen_at, a.resolved_at
    from channel_alerts a left join sources s on s.id = a.source_id where a.id = any(${Columns.text(ids)})`
  const settings = yield* settingsOf(team_id)
  const url = transport === "chat" ? yield* chatUrlOf(team_id, settings.chat_webhook_url) : null
  const first = yield* sql<{ message_id: string }>`
    select distinct message_id from channel_alert_deliveries
    where alert_id = any(${Columns.text(ids)}) and transport = ${transport} and kind = 'opened' and status = 'sent'
      and message_id <> ${message_id} order by message_id desc limit 10`
  const byId = new Map(alerts.map((alert) => [alert.id, alert]))
  const message: ClaimedMessage = {
    message_id,
    team_id,
    transport,
    attempts,
    deliveries: rows.map(({ id }) => id),
    alerts: rows.flatMap(({ alert_id, kind }) => {
      const alert = byId.get(alert_id)
      return alert === undefined ? [] : [toldAs(kind, alert)]
    }),
    to: transport === "email" ? yield* recipientsOf(team_id, settings) : url === null ? [] : [url],
    references: first.map((one) => one.message_id).toReversed()
  }
  return message
})

interface AlertRow extends Omit<ToldAlert, "kind" | "first_seen_at" | "resolved_at"> {
  readonly id: string
  readonly first_seen_at: Date
  readonly resolved_at: Date | null
}

const toldAs = (kind: MessageKind, alert: AlertRow): ToldAlert => ({
  kind,
  code: alert.code,
  source_name: alert.source_name,
  message: alert.message,
  occurrences: alert.occurrences,
  first_seen_at: alert.first_seen_at.getTime(),
  resolved_at: alert.resolved_at?.getTime() ?? null
})

/** How sending a message has ended. `response_status`: of the chat, or the reply code of the mail server. */
export type SendResult =
  | { readonly kind: "sent"; readonly response_status: number | null }
  | {
      readonly kind: "failed"
      readonly response_status: number | null
      readonly error_code: string
      /** The same message would fail again. */
      readonly isPermanent: boolean
      /** The wait that the receiver asks for (ms); null: none. */
      readonly retryAfterMs: number | null
    }

/** Records how a claimed message has ended. One that was claimed again meanwhile is left to the one who did. */
export const recordMessage = Effect.fnUntraced(function* (
  { attempts, deliveries, team_id, transport }: ClaimedMessage,
  result: SendResult,
  now: number
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const at = new Date(now)
  const isSent = result.kind === "sent"
  const wait = isSent || result.isPermanent ? null : waitOf(attempts, result.retryAfterMs)
  const status = isSent ? "sent" : wait === null ? "failed" : "queued"
  yield* sql.withTransaction(
    Effect.gen(function* () {
      const rows = yield* sql<{ source_id: string }>`
        update channel_alert_deliveries set status = ${status}, response_status = ${result.response_status},
          error_code = ${isSent ? null : result.error_code}, sent_at = ${isSent ? at : null},
          due_at = ${wait === null ? null : new Date(now + wait)}
        where id = any(${Columns.text(deliveries)}) and status = 'queued' and attempts = ${attempts}
        returning source_id`
      if (transport === "chat" && rows.length > 0) {
        const error = !isSent && result.isPermanent ? errorText(result) : null
        if (isSent || error !== null) {
          yield* sql`
            update channel_settings set chat_last_error = ${error}
            where team_id = ${team_id} and chat_last_error is distinct from ${error}`
        }
      }
      if (!isSent) return
      const bySource = Map.groupBy(rows, ({ source_id }) => source_id)
      for (const source of [...bySource.keys()].toSorted()) {
        yield* count(team_id, source, { alerts_sent: bySource.get(source)!.length }, now)
      }
    })
  )
})

const errorText = ({ error_code, response_status }: Extract<SendResult, { readonly kind: "failed" }>): string =>
  response_status === null ? error_code : `The chat answered with HTTP ${response_status}`

/** The wait before the next attempt (ms); null: there is none. */
const waitOf = (attempts: number, retryAfterMs: number | null): number | null => {
  const own = retries[attempts - 1]
  return own === undefined ? null : Math.max(own, Math.min(retryAfterMs ?? 0, longestRetryAfterMs))
}

/** When the next alert or message is due (Unix ms); null: none is. */
export const nextAlertWork: Effect.Effect<number | null, SqlError.SqlError, SqlClient.SqlClient> = Effect.gen(
  function* () {
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql<{ at: Date | null }>`
      select least(
        (select min(notify_at) from channel_alerts where notify_at is not null),
        (select min(due_at) from channel_alert_deliveries where due_at is not null)
      ) as at`
    return row?.at?.getTime() ?? null
  }
)
