import { Clock, Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { type ChannelSettings, channelSettingsDefaults } from "@tidegate/model/ChannelAlert"
import { fail, type FieldError, type GatewayError } from "@tidegate/model/GatewayError"
import * as Columns from "../journal/Columns.ts"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { holdTeam } from "../teams/Teams.ts"
import { transaction } from "../Transaction.ts"

/* How teams are told of alerts. A team without a row has the defaults. */

interface Row {
  readonly email_enabled: boolean
  readonly email_recipients: ReadonlyArray<string>
  readonly chat_enabled: boolean
  /** Encrypted. */
  readonly chat_webhook_url: string | null
  readonly chat_last_error: string | null
  readonly cooldown_minutes: number
  readonly silence_alert_hours: number
  readonly silence_alert_enabled: boolean
  readonly updated_at: Date | null
}

const defaults: Row = {
  ...channelSettingsDefaults,
  chat_webhook_url: null,
  chat_last_error: null,
  updated_at: null
}

/** Absent members stay. */
export interface AlertSettingsChange {
  readonly email_enabled?: boolean | undefined
  readonly email_recipients?: ReadonlyArray<string> | undefined
  readonly chat_enabled?: boolean | undefined
  /** Empty: none any more. */
  readonly chat_webhook_url?: string | undefined
  readonly cooldown_minutes?: number | undefined
  readonly silence_alert_hours?: number | undefined
  readonly silence_alert_enabled?: boolean | undefined
}

const shown = ({ chat_webhook_url, updated_at, ...row }: Row): ChannelSettings => ({
  email_enabled: row.email_enabled,
  email_recipients: row.email_recipients,
  chat_enabled: row.chat_enabled,
  chat_configured: chat_webhook_url !== null,
  chat_last_error: row.chat_last_error,
  cooldown_minutes: row.cooldown_minutes,
  silence_alert_hours: row.silence_alert_hours,
  silence_alert_enabled: row.silence_alert_enabled,
  updated_at: updated_at?.toISOString() ?? null
})

const rowOf = Effect.fnUntraced(function* (team_id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<Row>`
    select email_enabled, email_recipients, chat_enabled, chat_webhook_url, chat_last_error, cooldown_minutes,
      silence_alert_hours, silence_alert_enabled, updated_at
    from channel_settings where team_id = ${team_id}`
  return row ?? defaults
})

export const alertSettings = Effect.fnUntraced(function* (
  team_id: string
): Effect.fn.Return<ChannelSettings, SqlError.SqlError, SqlClient.SqlClient> {
  return shown(yield* rowOf(team_id))
})

/** The chat's URL of a team; null: none, or it cannot be decrypted. */
export const chatUrlOf = Effect.fnUntraced(function* (
  team_id: string,
  sealed: string | null
): Effect.fn.Return<string | null, never, Secrets> {
  const { url } = yield* columnOf(yield* Secrets).show({ team_id, id: team_id }, sealed)
  return typeof url === "string" ? url : null
})

const columnOf = (secrets: Secrets["Service"]) => sealedColumn(secrets, "channel_settings", "chat_webhook_url")

export const invalidSettings = (fields: ReadonlyArray<FieldError>): GatewayError =>
  fail("CHANNEL_SETTINGS_INVALID", fields.map(({ message, path }) => `${path} ${message}`).join("; "), {
    fields: fields.map(({ message, path }) => ({ path, message }))
  })

export const changeAlertSettings = Effect.fnUntraced(function* (
  team_id: string,
  { chat_webhook_url: url, ...change }: AlertSettingsChange
): Effect.fn.Return<ChannelSettings, GatewayError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const column = columnOf(yield* Secrets)
  const at = new Date(yield* Clock.currentTimeMillis)
  return yield* transaction(sql)(
    Effect.gen(function* () {
      yield* holdTeam(team_id)
      const before = yield* rowOf(team_id)
      const {
        chat_enabled,
        cooldown_minutes,
        email_enabled,
        email_recipients,
        silence_alert_enabled,
        silence_alert_hours
      } = { ...before, ...present(change) }
      const sealed =
        url === undefined
          ? before.chat_webhook_url
          : yield* column.seal({ team_id, id: team_id }, url === "" ? {} : { url })
      if (chat_enabled && sealed === null) {
        yield* invalidSettings([{ path: "chat_enabled", message: "needs a chat_webhook_url" }])
      }
      // An error of the previous URL does not apply to the new one.
      const lastError = url === undefined ? before.chat_last_error : null
      yield* sql`
        insert into channel_settings (team_id, email_enabled, email_recipients, chat_enabled, chat_webhook_url, chat_last_error,
          cooldown_minutes, silence_alert_hours, silence_alert_enabled, updated_at)
        values (${team_id}, ${email_enabled}, ${Columns.text(email_recipients)}, ${chat_enabled}, ${sealed}, ${lastError},
          ${cooldown_minutes}, ${silence_alert_hours}, ${silence_alert_enabled}, ${at})
        on conflict (team_id) do update set email_enabled = excluded.email_enabled, email_recipients = excluded.email_recipients,
          chat_enabled = excluded.chat_enabled, chat_webhook_url = excluded.chat_webhook_url,
          chat_last_error = excluded.chat_last_error, cooldown_minutes = excluded.cooldown_minutes,
          silence_alert_hours = excluded.silence_alert_hours, silence_alert_enabled = excluded.silence_alert_enabled,
          updated_at = excluded.updated_at`
      return shown(yield* rowOf(team_id))
    })
  )
})

/** Without the absent members, which would hide the stored ones. */
const present = (change: Omit<AlertSettingsChange, "chat_webhook_url">) =>
  Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as Partial<Row>
