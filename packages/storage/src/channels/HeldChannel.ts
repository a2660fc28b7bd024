import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import type { AlertCode } from "@tidegate/channels/machine/Facts"
import type { Channel, ChannelSubscription } from "@tidegate/channels/machine/Channel"
import { stateOf } from "@tidegate/channels/machine/State"
import type { Definition } from "@tidegate/channels/SourceProviders"
import { accountStateOf, type ProviderSettings } from "@tidegate/model/ProviderSource"
import * as Columns from "../journal/Columns.ts"

/** The silence that is reported before a team has settings of its own. */
const defaultSilenceHours = 24

/** A channel as it was at one moment. */
export interface HeldChannel {
  readonly channel: Channel
  /**
   * The fence: each change of the channel, its source, its account or its subscriptions raises the version in its commit. A commit
   * that names an outdated version writes nothing.
   */
  readonly version: number
  readonly shard: number | null
  readonly due_at: number | null
}

/** Finds the definition of a provider source. */
export type DefinitionOf = (provider_key: string, definition_key: string) => Definition | undefined

interface Row {
  readonly source_id: string
  readonly team_id: string
  readonly version: number
  readonly shard: number | null
  readonly due_at: Date | null
  readonly created_at: Date
  readonly disabled_at: Date | null
  readonly deleted_at: Date | null
  readonly settings: ProviderSettings | null
  readonly account_id: string | null
  readonly account_disabled_at: Date | null
  readonly account_revoked_at: Date | null
  readonly account_failed_at: Date | null
  readonly account_connection: string
  readonly silence_enabled: boolean | null
  readonly silence_hours: number | null
  readonly state: unknown
  readonly dirty_at: Date | null
  readonly run_id: string | null
  readonly retry_requested_at: Date | null
  readonly alerts: ReadonlyArray<AlertCode>
  readonly waiting: boolean
  readonly subscriptions: ReadonlyArray<ChannelSubscription>
}

const texts = [
  "id",
  "adapter",
  "definition_key",
  "account_id",
  "target",
  "external_channel_id",
  "external_resource_id",
  "state",
  "last_message_number",
  "last_error"
]
const times = [
  "verified_at",
  "expires_at",
  "last_renewed_at",
  "renew_at",
  "last_notification_at",
  "stop_at",
  "stopped_at",
  "created_at",
  "forgotten_at"
]

/** A subscription as JSON. Times are Unix ms. */
const subscription = `json_build_object(${[
  ...texts.map((name) => `'${name}', u.${name}`),
  ...times.map((name) => `'${name}', floor(extract(epoch from u.${name}) * 1000)::int8`)
].join(", ")})`

const ms = (at: Date | null): number | null => at?.getTime() ?? null

const toHeld = (row: Row, definitionOf: DefinitionOf): HeldChannel => {
  const { account_id, settings } = row
  const account = {
    disabled_at: row.account_disabled_at,
    revoked_at: row.account_revoked_at,
    failed_at: row.account_failed_at,
    connection: row.account_connection
  }
  const channel: Channel = {
    source_id: row.source_id,
    team_id: row.team_id,
    created_at: row.created_at.getTime(),
    disabled: row.disabled_at !== null,
    deleted: row.deleted_at !== null,
    settings,
    definition: settings === null ? null : (definitionOf(settings.provider_key, settings.definition_key) ?? null),
    account: account_id === null ? null : { id: account_id, state: accountStateOf(account) },
    silence: { enabled: row.silence_enabled ?? true, hours: row.silence_hours ?? defaultSilenceHours },
    state: stateOf(row.state),
    dirty_at: ms(row.dirty_at),
    run_id: row.run_id,
    retry_requested_at: ms(row.retry_requested_at),
    subscriptions: row.subscriptions,
    alerts: row.alerts,
    waiting: row.waiting
  }
  return { channel, version: row.version, shard: row.shard, due_at: ms(row.due_at) }
}

/**
 * Reads channels with everything that decides about them, by their sources; those that are gone are absent. The subscriptions are
 * those that live, and those that have ended since the machine last looked. One statement: everything is as it was at one moment.
 */
export const readChannels = Effect.fnUntraced(function* (
  source_ids: ReadonlyArray<string>,
  definitionOf: DefinitionOf
): Effect.fn.Return<ReadonlyMap<string, HeldChannel>, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<Row>`
    select c.source_id, c.team_id, c.version::float8 as version, c.shard, c.due_at, s.created_at, s.disabled_at, s.deleted_at,
      s.config -> 'provider' as settings, a.id as account_id, a.disabled_at as account_disabled_at,
      a.revoked_at as account_revoked_at, a.failed_at as account_failed_at, a.connection as account_connection,
      t.silence_alert_enabled as silence_enabled, t.silence_alert_hours as silence_hours,
      c.state, c.dirty_at, c.run_id, c.retry_requested_at,
      array(select code from channel_alerts where source_id = c.source_id and status = 'active') as alerts,
      exists (select from channel_items where source_id = c.source_id and body is not null) as waiting,
      coalesce((
        select json_agg(${sql.literal(subscription)} order by u.id) from channel_subscriptions u
        where u.source_id = c.source_id
          and (u.forgotten_at is null or u.id = any(array(select json_object_keys(c.state -> 'subscriptions'))))
      ), '[]') as subscriptions
    from channels c
      join sources s on s.id = c.source_id
      left join provider_accounts a on a.id = s.config -> 'provider' ->> 'provider_account_id' and a.team_id = c.team_id
        and a.provider_key = s.config -> 'provider' ->> 'provider_key'
      left join channel_settings t on t.team_id = c.team_id
    where c.source_id = any(${Columns.text(source_ids)})`
  return new Map(rows.map((row) => [row.source_id, toHeld(row, definitionOf)]))
})
