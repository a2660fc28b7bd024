import { Effect, type Schema } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { forgottenAfterMs } from "@tidegate/channels/machine/Times"
import { type GatewayError, notFound } from "@tidegate/model/GatewayError"
import type { AccountRevoked, AccountUser } from "@tidegate/model/ProviderAccount"
import { sealedColumn } from "../secrets/SealedColumn.ts"
import { Secrets } from "../secrets/Secrets.ts"
import { transaction } from "../Transaction.ts"
import { unused, usageOf } from "./AccountUsage.ts"
import { type AccountRow, wakeChannelsOf } from "./ProviderAccounts.ts"

/** Subscriptions that one revocation ends at most; a source has at most 50. */
const maxEnded = 1_000

/** `used_by`: absent from revocations of earlier versions. */
interface Result {
  readonly provider_revoked: boolean
  readonly channels_stopped: number
  readonly channels_failed: number
  readonly used_by?: ReadonlyArray<AccountUser>
}

type Row = AccountRow & { readonly revocation: Result | null }

const shown = ({ id, revocation, revoked_at }: Row): AccountRevoked | null =>
  revoked_at === null
    ? null
    : {
        id,
        status: "disabled",
        revoked_at: revoked_at.toISOString(),
        provider_revoked: false,
        channels_stopped: 0,
        channels_failed: 0,
        used_by: [],
        ...revocation
      }

const held = Effect.fnUntraced(function* (team_id: string, id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] =
    yield* sql<Row>`select * from provider_accounts where id = ${id} and team_id = ${team_id} for no key update`
  return row ?? (yield* notFound("provider_account", id))
})

/**
 * Disables an account, so that nothing new is made with it. Returns the result of an earlier revocation; null: its subscriptions
 * and its token have to be ended now. A revocation that a crash has interrupted is begun again.
 */
export const beginRevocation = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  now: Date
): Effect.fn.Return<AccountRevoked | null, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const row = yield* held(team_id, id)
      if (row.revoked_at !== null) return shown(row)
      yield* sql`update provider_accounts set disabled_at = coalesce(disabled_at, ${now}), updated_at = ${now} where id = ${id}`
      yield* wakeChannelsOf(row, now)
      return null
    })
  )
})

/** A subscription that the provider has to end. */
export interface LiveSubscription {
  readonly id: string
  readonly definition_key: string
  readonly target: string
  readonly external_channel_id: string | null
  readonly external_resource_id: string | null
  readonly expires_at: Date | null
  readonly last_message_number: number | null
  /** The inputs that it was created with; those of its source if they are not known. */
  readonly inputs: Schema.JsonObject
  /** `token` and `secret`; empty if they cannot be read. */
  readonly secrets: Schema.JsonObject
}

/** The subscriptions that were made with an account and have not ended. */
export const liveSubscriptionsOf = Effect.fnUntraced(function* (
  team_id: string,
  account_id: string
): Effect.fn.Return<ReadonlyArray<LiveSubscription>, SqlError.SqlError, SqlClient.SqlClient | Secrets> {
  const sql = yield* SqlClient.SqlClient
  const sealing = sealedColumn(yield* Secrets, "channel_subscriptions", "secrets")
  const rows = yield* sql<Omit<LiveSubscription, "secrets"> & { readonly secrets: string }>`
    select c.id, c.definition_key, c.target, c.external_channel_id, c.external_resource_id, c.expires_at,
      c.last_message_number::float8 as last_message_number, c.secrets,
      coalesce(
        (h.state -> 'bases' -> (h.state -> 'subscriptions' -> c.id ->> 'basis') -> 'inputs')::jsonb,
        s.config -> 'provider' -> 'inputs',
        '{}'
      ) as inputs
    from channel_subscriptions c left join sources s on s.id = c.source_id left join channels h on h.source_id = c.source_id
    where c.team_id = ${team_id} and c.account_id = ${account_id} and c.stopped_at is null
      and c.state in ('requested', 'verifying', 'active', 'superseded')
    order by c.id limit ${maxEnded}`
  return yield* Effect.forEach(rows, (row) =>
    Effect.map(sealing.show({ id: row.id, team_id }, row.secrets), (secrets) => ({ ...row, secrets }))
  )
})

/** Stores that a subscription has ended. The version of its channel says to the channel's actor that it has changed. */
export const endSubscription = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  now: Date
): Effect.fn.Return<void, SqlError.SqlError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  // The channel is locked before the subscription, as by everyone.
  yield* sql`
    with channel as (
      update channels set version = version + 1, updated_at = ${now}
      where team_id = ${team_id} and source_id = (select source_id from channel_subscriptions where id = ${id} and team_id = ${team_id})
      returning 1
    )
    update channel_subscriptions set state = 'stopped', stopped_at = ${now}, stop_at = null,
      forgotten_at = ${new Date(now.getTime() + forgottenAfterMs)}
    where id = ${id} and team_id = ${team_id} and stopped_at is null and (select count(*) from channel) >= 0`
})

/** Deletes the credentials and tokens of an account, and stores the result. The first result stays. */
export const endRevocation = Effect.fnUntraced(function* (
  team_id: string,
  id: string,
  ended: Omit<Result, "used_by">,
  now: Date
): Effect.fn.Return<AccountRevoked, GatewayError, SqlClient.SqlClient> {
  const sql = yield* SqlClient.SqlClient
  return yield* transaction(sql)(
    Effect.gen(function* () {
      const row = yield* held(team_id, id)
      const before = shown(row)
      if (before !== null) return before
      const { used_by } = (yield* usageOf(team_id, [id])).get(id) ?? unused
      const result = { ...ended, used_by }
      yield* sql`
        update provider_accounts set credentials = null, held = null, claim = null, claimed_until = null, token_expires_at = null,
          failed_at = null, last_error = null, disabled_at = coalesce(disabled_at, ${now}), revoked_at = ${now},
          revocation = ${JSON.stringify(result)}::json, version = version + 1, updated_at = ${now}
        where id = ${id}`
      yield* wakeChannelsOf(row, now)
      return shown({ ...row, revoked_at: now, revocation: result })!
    })
  )
})
