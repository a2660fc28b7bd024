import { Effect } from "effect"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { AccountKind, SourceProvider } from "@tidegate/channels/SourceProvider"
import { type GatewayError, invalid } from "@tidegate/model/GatewayError"
import type { AccountConnection } from "@tidegate/model/ProviderAccount"
import { mayConnect } from "@tidegate/storage/accounts/AccountConnect"
import type { Database } from "@tidegate/storage/Database"
import { query } from "@tidegate/storage/Transaction"
import { oauthAt } from "./AccountCredential.ts"

/** What somebody wants to connect, and as which account. */
interface Wanted {
  readonly provider_key: string
  readonly base_url?: string | null
  readonly account_id?: string | null
}

/** The account that is connected: a new one, or one that keeps its id. */
export interface AccountPlace {
  readonly id: string
  readonly team_id: string
  readonly provider: SourceProvider
  readonly kind: AccountKind
  /** Without a trailing slash. */
  readonly base_url: string
  readonly isReconnected: boolean
}

const refuse = (path: string, message: string): GatewayError => invalid([{ path, message }])

/** `new_id`: the id of a new account. Fails unless the provider has such accounts and the team has a place for one. */
export const accountPlace = Effect.fnUntraced(function* (
  team_id: string,
  new_id: string,
  { account_id, base_url, provider_key }: Wanted,
  connection: AccountConnection
): Effect.fn.Return<AccountPlace, GatewayError, Database> {
  const providers = yield* KnownProviders
  const provider = providers.find(({ key }) => key === provider_key)
  if (provider === undefined) return yield* refuse("provider_key", "is not a provider: see GET /source-providers")
  const kind = provider.account
  if (kind === null) return yield* refuse("provider_key", `${provider_key} needs no account`)
  if (!kind.connections.includes(connection)) {
    return yield* refuse("provider_key", `${provider_key} has no accounts of the kind ${connection}`)
  }
  const written = base_url ?? null
  if (written !== null && !kind.selfHosted) {
    return yield* refuse("base_url", `must be absent: ${provider_key} is not hosted by its users`)
  }
  const isReconnected = account_id !== undefined && account_id !== null
  const id = isReconnected ? account_id : new_id
  const before = yield* query(mayConnect({ id, team_id, provider_key, isReconnected }))
  const base = (written ?? before?.base_url ?? kind.origin).replace(/\/+$/, "")
  if (connection === "oauth2" && oauthAt(kind, base) === null) {
    return yield* refuse("base_url", "must be absent for a consent, which is given to the provider's own service")
  }
  return {
    id,
    team_id,
    provider,
    kind,
    base_url: base,
    isReconnected
  }
})
