import { Context, type Effect } from "effect"
import type { Call } from "@tidegate/channels/Adapter"
import type { SourceProvider } from "@tidegate/channels/SourceProvider"

/** Whose credentials a call to a provider carries. */
export interface CallOwner {
  readonly team_id: string
  readonly provider: SourceProvider
  /** Null: calls carry no credentials. */
  readonly account_id: string | null
}

/**
 * Sends requests to providers through the guarded egress, with the credentials of the account. Credentials are sent only to the
 * account's origin; otherwise the call fails and nothing is sent.
 */
export class ProviderCalls extends Context.Service<
  ProviderCalls,
  {
    readonly of: (owner: CallOwner) => Call
    /** The origin of the API for this account: its `base_url`, or the one of the provider's row. */
    readonly baseUrl: (owner: CallOwner) => Effect.Effect<string>
  }
>()("@tidegate/entities/ProviderCalls") {}
