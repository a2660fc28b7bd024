import { Schema } from "effect"
import { RestoreAfter, Schedule } from "./Channel.ts"

/** The type of sources whose requests are items of a provider. */
export const providerType = "PROVIDER"

/** How a provider source gets its items: `config.provider` of a source of type `PROVIDER`, as stored. */
export const ProviderSettings = Schema.Struct({
  provider_key: Schema.String,
  /** The definition selects the trigger and the delivery mode. */
  definition_key: Schema.String,
  provider_account_id: Schema.NullOr(Schema.String),
  /** The trigger's inputs, complete. */
  inputs: Schema.JsonObject.check(Schema.isMaxProperties(100)),
  schedule: Schedule,
  /** Whether polling takes over when instant delivery fails. */
  auto_fallback: Schema.Boolean,
  /** Failures in a row before it does. */
  max_failures: Schema.Int,
  restore_after_minutes: RestoreAfter
})
export interface ProviderSettings extends Schema.Schema.Type<typeof ProviderSettings> {}

export const deliveryDefaults = { interval_minutes: 5, auto_fallback: true, max_failures: 3, restore_after_minutes: 30 }

/** What a channel needs to know of its provider account. */
export type AccountState = "active" | "expired" | "error" | "revoked"

/**
 * The state of an account from its row. `failed_at`: since when the provider has refused its credentials. `disabled_at` without
 * `revoked_at`: a revocation is under way. Both hold until the account is connected again.
 */
export const accountStateOf = (row: {
  readonly disabled_at: Date | null
  readonly revoked_at: Date | null
  readonly failed_at: Date | null
  readonly connection: string
}): AccountState => {
  if (row.revoked_at !== null) return "revoked"
  if (row.disabled_at !== null) return "error"
  if (row.failed_at !== null) return row.connection === "oauth2" ? "expired" : "error"
  return "active"
}
