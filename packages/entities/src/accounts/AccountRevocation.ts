import { Clock, Effect } from "effect"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { SourceProvider } from "@tidegate/channels/SourceProvider"
import { definitionsOf } from "@tidegate/channels/SourceProviders"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { Egress } from "@tidegate/egress/Egress"
import type { GatewayError } from "@tidegate/model/GatewayError"
import { channelUrl, Ingress } from "@tidegate/model/Ingress"
import type { AccountRevoked } from "@tidegate/model/ProviderAccount"
import {
  beginRevocation,
  endRevocation,
  endSubscription,
  type LiveSubscription,
  liveSubscriptionsOf
} from "@tidegate/storage/accounts/AccountRevocation"
import { readAccountTokens } from "@tidegate/storage/accounts/AccountTokens"
import { openAccount, type OpenedAccount } from "@tidegate/storage/accounts/ProviderAccounts"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { query } from "@tidegate/storage/Transaction"
import { heldFor } from "../tokens/Held.ts"
import { revokeToken } from "../tokens/TokenRevocation.ts"
import { clientOf, credentialFor, endpointOf, fieldOf, oauthAt } from "./AccountCredential.ts"
import { ProviderCalls } from "./ProviderCalls.ts"

/** Subscriptions that are ended at the same time, and how long that may take: the caller waits for it. */
const atOnce = 5
const oneMs = 3_000
const allMs = 6_000

/**
 * Revokes accounts: first their subscriptions end at the provider, then their token is revoked there, then their credentials are
 * deleted here. What the provider refuses or does not answer in time does not hold up the rest.
 */
export const makeAccountRevocation = Effect.gen(function* () {
  const egress = yield* Egress
  const ingress = yield* Ingress
  const origins = yield* ApiOrigins
  const providers = yield* KnownProviders
  const { of } = yield* ProviderCalls
  const services = yield* Effect.context<Database | Secrets>()

  /** Ends one subscription; returns whether that succeeded. */
  const stopped = Effect.fnUntraced(function* (
    { base_url, id, team_id }: OpenedAccount,
    provider: SourceProvider,
    subscription: LiveSubscription,
    until: number
  ) {
    const now = yield* Clock.currentTimeMillis
    const { adapter } = definitionsOf(provider).find(({ key }) => key === subscription.definition_key)?.trigger ?? {
      adapter: null
    }
    const [secret, token] = [fieldOf(subscription.secrets, "secret"), fieldOf(subscription.secrets, "token")]
    if (adapter === null || secret === null || token === null || now >= until) return false
    const context = {
      call: of({ team_id, provider, account_id: id, isEnding: true }),
      baseUrl: base_url,
      inputs: subscription.inputs,
      now
    }
    const known = {
      id: subscription.id,
      target: subscription.target,
      secret,
      externalChannelId: subscription.external_channel_id,
      externalResourceId: subscription.external_resource_id,
      expiresAt: subscription.expires_at?.getTime() ?? null,
      lastMessageNumber: subscription.last_message_number
    }
    return yield* adapter.stop(context, known, channelUrl(ingress, token)).pipe(
      Effect.andThen(Effect.map(Clock.currentTimeMillis, (at) => new Date(at))),
      Effect.flatMap((at) => query(endSubscription(team_id, subscription.id, at))),
      Effect.timeout(oneMs),
      Effect.as(true),
      Effect.catchCause((cause) =>
        Effect.as(Effect.logWarning("a subscription of a revoked account was not ended", cause), false)
      )
    )
  })

  const tokenRevoked = Effect.fnUntraced(function* (account: OpenedAccount, { account: kind }: SourceProvider) {
    if (kind === null) return false
    const oauth = account.connection === "oauth2" ? oauthAt(kind, account.base_url) : kind.appTokens
    const endpoint = oauth?.revocationUrl ?? null
    const credential = credentialFor(account, kind, origins)
    if (endpoint === null || credential === null) return false
    const held = heldFor(credential, yield* query(readAccountTokens(account)))
    const token = held.refresh ?? held.access?.token ?? null
    if (token === null) return false
    const url = new URL(endpointOf(endpoint, account.base_url))
    return yield* revokeToken(egress, origins(url.origin) + url.pathname + url.search, clientOf(account.fields), token)
  })

  const revoke = Effect.fnUntraced(function* (
    team_id: string,
    id: string
  ): Effect.fn.Return<AccountRevoked, GatewayError, Database | Secrets> {
    const began = yield* Clock.currentTimeMillis
    const before = yield* beginRevocation(team_id, id, new Date(began))
    if (before !== null) return before
    // Without readable credentials nothing can be ended at the provider.
    const account = yield* query(
      Effect.catchTag(openAccount(team_id, id), "SecretUnreadable", () => Effect.succeed(null))
    )
    const provider = providers.find(({ key }) => key === account?.provider_key)
    const subscriptions = yield* query(liveSubscriptionsOf(team_id, id))
    const isCallable = account !== null && provider !== undefined
    const ends = isCallable
      ? yield* Effect.forEach(subscriptions, (one) => stopped(account, provider, one, began + allMs), {
          concurrency: atOnce
        })
      : subscriptions.map(() => false)
    const provider_revoked = isCallable ? yield* tokenRevoked(account, provider) : false
    const channels_stopped = ends.filter((isEnded) => isEnded).length
    const result = { provider_revoked, channels_stopped, channels_failed: ends.length - channels_stopped }
    return yield* endRevocation(team_id, id, result, new Date(yield* Clock.currentTimeMillis))
  })

  return (team_id: string, id: string) => Effect.provideContext(revoke(team_id, id), services)
})
