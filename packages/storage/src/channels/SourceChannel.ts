import { Effect } from "effect"
import { SqlClient, type SqlError } from "effect/sql"
import { definitionOf, pairOf } from "@tidegate/channels/SourceProviders"
import { readJson } from "@tidegate/json/JsonText"
import { fail, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { accountStateOf, type ProviderSettings } from "@tidegate/model/ProviderSource"
import type { SourceConfig } from "@tidegate/resources/Source"
import type { Owner } from "../secrets/SealedColumn.ts"
import type { Values } from "../control/Store.ts"
import { channelEvent } from "./ChannelEvents.ts"

/** The account that a change of a provider source needs, and the effects of the change on its channel. */

/** The part of a source's row that its channel depends on. */
interface ProviderRow extends Owner {
  readonly config: { readonly provider?: ProviderSettings }
}

/** The state of an account of this provider in the team; null: there is none. */
const accountState = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  team_id: string,
  { provider_account_id, provider_key }: ProviderSettings
) {
  if (provider_account_id === null) return null
  const [row] = yield* sql<Parameters<typeof accountStateOf>[0]>`
    select disabled_at, revoked_at, failed_at, connection from provider_accounts
    where id = ${provider_account_id} and team_id = ${team_id} and provider_key = ${provider_key}`
  return row === undefined ? null : accountStateOf(row)
})

/** Fails when the provider has accounts and the source's account is not connected. */
export const needConnected = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { id, team_id }: Owner,
  settings: ProviderSettings
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  const needsAccount = definitionOf(settings.provider_key, settings.definition_key)?.provider.account !== null
  if (!needsAccount || (yield* accountState(sql, team_id, settings)) === "active") return
  yield* fail("PROVIDER_ACCOUNT_NOT_CONNECTED", "the account of the source is not connected: connect it again", {
    source_id: id
  })
})

const modeOf = ({ definition_key, provider_key }: ProviderSettings) =>
  definitionOf(provider_key, definition_key)?.mode ?? null

/**
 * Checks the account of the values to be written: it belongs to the team and to the provider. Instant delivery that takes the
 * place of polling needs an account that is connected.
 */
export const checkAccount = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  owner: Owner,
  before: ProviderRow | null,
  next: Values
): Effect.fn.Return<void, GatewayError | SqlError.SqlError> {
  if (typeof next["config"] !== "string") return
  const { provider } = readJson(next["config"]) as SourceConfig
  if (provider === undefined) return
  const stored = before?.config.provider
  const { provider_account_id } = provider
  if (provider_account_id !== null && provider_account_id !== stored?.provider_account_id) {
    if ((yield* accountState(sql, owner.team_id, provider)) === null) {
      const message = `is no account of the team at ${provider.provider_key}`
      yield* invalid([{ path: "config.provider.provider_account_id", message }])
    }
  }
  const becomesInstant = stored !== undefined && modeOf(stored) === "polling" && modeOf(provider) === "instant"
  if (becomesInstant) yield* needConnected(sql, owner, provider)
})

const changedDelivery = (before: ProviderSettings | undefined, after: ProviderSettings): string | null => {
  if (before === undefined || before.definition_key === after.definition_key) return null
  const [from, to] = [before, after].map(({ definition_key, provider_key }) =>
    definitionOf(provider_key, definition_key)
  )
  const isPair = from !== undefined && to !== undefined && pairOf(from)?.key === to.key
  return isPair ? `Delivery is ${to.mode} from now on` : `The trigger is ${after.definition_key} from now on`
}

/**
 * Writes the row of the source's channel in the commit that creates the source; each later change makes it due. The row of a
 * deleted source stays until its actor has ended all subscriptions.
 */
export const followChannel = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  before: ProviderRow | null,
  { config, id, team_id }: ProviderRow,
  at: Date
): Effect.fn.Return<void, SqlError.SqlError> {
  if (before === null) {
    yield* sql`
      insert into channels (source_id, team_id, due_at, created_at, updated_at) values (${id}, ${team_id}, ${at}, ${at}, ${at})`
    return
  }
  yield* sql`update channels set due_at = ${at}, version = version + 1, updated_at = ${at} where source_id = ${id}`
  const message = config.provider === undefined ? null : changedDelivery(before.config.provider, config.provider)
  if (message === null) return
  const event = {
    team_id,
    source_id: id,
    kind: "delivery_changed" as const,
    severity: "info" as const,
    message,
    error_code: null,
    subscription_id: null,
    details: { from: before.config.provider?.definition_key ?? null, to: config.provider?.definition_key ?? null }
  }
  yield* Effect.provideService(channelEvent(event, at.getTime()), SqlClient.SqlClient, sql)
})
