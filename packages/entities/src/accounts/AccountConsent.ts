import { Clock, Effect, type Schema } from "effect"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { Egress } from "@tidegate/egress/Egress"
import { fail, type GatewayError } from "@tidegate/model/GatewayError"
import { Ingress } from "@tidegate/model/Ingress"
import type { ConsentInput } from "@tidegate/resources/ProviderAccountInput"
import { connectAccount } from "@tidegate/storage/accounts/AccountConnect"
import {
  type AccountConsent,
  accountConsentOf,
  beginAccountConsent,
  settleAccountConsent,
  takeAccountConsent
} from "@tidegate/storage/accounts/AccountConsents"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { query } from "@tidegate/storage/Transaction"
import { type Consents, endConsent, startConsent } from "../tokens/Consent.ts"
import type { Credential } from "../tokens/Credential.ts"
import { heldFor, obtained } from "../tokens/Held.ts"
import { type Ask, askForTokens } from "../tokens/TokenEndpoint.ts"
import { accountCredential, endpointOf, fieldOf, headerFields, oauthAt } from "./AccountCredential.ts"
import { readIdentity } from "./AccountIdentity.ts"
import { accountPlace } from "./AccountPlace.ts"
import { makeProviderExchange } from "./ProviderExchange.ts"

/** The account that comes of a consent, as the consent's data has it. */
interface Draft extends Schema.JsonObject {
  readonly provider_key: string
  readonly name: string | null
  readonly base_url: string
  readonly scopes: ReadonlyArray<string>
  readonly redirect_uri: string | null
  /** The OAuth client. */
  readonly fields: Schema.JsonObject
  readonly isReconnected: boolean
}

const draftOf = ({ consent }: AccountConsent): Draft | null => (consent["draft"] as Draft | undefined) ?? null

const unknown = fail(
  "OAUTH2_STATE_INVALID",
  "the consent was not begun here, has ended already, or was begun by another caller: start it again"
)

/** How the person is asked. The row's parameters, such as `access_type`, are part of the URL. */
const askedBy = (
  owner: { readonly id: string; readonly team_id: string },
  kind: AccountKind,
  { base_url, fields, redirect_uri, scopes }: Draft,
  origins: ApiOrigins
): Credential | null => {
  const oauth2 = oauthAt(kind, base_url)
  if (oauth2 === null) return null
  const url = new URL(endpointOf(oauth2.authorizationUrl, base_url))
  for (const [name, value] of Object.entries(oauth2.parameters)) url.searchParams.set(name, value)
  const scope = scopes.length === 0 ? null : scopes.join(" ")
  const consent = { authorizationUrl: url.href, redirectUri: redirect_uri, scope }
  return accountCredential(owner, kind, { base_url, fields }, origins, consent)
}

type ApiOrigins = (typeof ApiOrigins)["Service"]

/** Where somebody comes back with a code or an error. */
export interface Back {
  readonly state: string
  readonly code: string | null
  readonly error: string | null
}

/** Whom a page asks for the consent. */
export interface AwaitedAccount {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly team_id: string
  readonly team_name: string
}

/**
 * Consents to accounts. An account exists from the end of its consent on. Over the API only the caller that began a consent may end
 * it. In a browser the person is shown whose account it becomes, and confirms that: the provider's redirect carries no credential.
 */
export const makeAccountConsents = Effect.gen(function* () {
  const egress = yield* Egress
  const ingress = yield* Ingress
  const origins = yield* ApiOrigins
  const providers = yield* KnownProviders
  const exchange = yield* makeProviderExchange
  const services = yield* Effect.context<Database | Secrets>()

  const kindOf = (key: string) => providers.find((provider) => provider.key === key)

  const consentsOf = (begun_by: string, draft: Draft): Consents => ({
    kind: "provider_account",
    path: "provider_key",
    begin: (owner, state, consent, until) =>
      beginAccountConsent(owner, begun_by, state, Object.assign({}, consent, { draft }), until),
    take: takeAccountConsent,
    finish: settleAccountConsent
  })

  const start = Effect.fnUntraced(function* (team_id: string, begun_by: string, new_id: string, input: ConsentInput) {
    const place = yield* accountPlace(team_id, new_id, input, "oauth2")
    const { client_id, client_secret = null, name = null, redirect_uri = null, token_auth_method = null } = input
    const draft: Draft = {
      provider_key: place.provider.key,
      name,
      base_url: place.base_url,
      scopes: input.scopes ?? place.kind.oauth2?.scopes ?? [],
      redirect_uri,
      fields: {
        client_id,
        ...(client_secret === null ? {} : { client_secret }),
        ...(token_auth_method === null ? {} : { token_auth_method })
      },
      isReconnected: place.isReconnected
    }
    const credential = askedBy(place, place.kind, draft, origins)
    return yield* startConsent(consentsOf(begun_by, draft), credential, team_id, ingress)
  })

  /** Exchanges the code, asks whose account it is, and stores the account: all of it, or nothing. */
  const connected = Effect.fnUntraced(function* (
    { account_id: id, team_id }: AccountConsent,
    draft: Draft,
    kind: AccountKind,
    ask: Extract<Ask, { kind: "code" }>
  ) {
    const owner = { id, team_id }
    const { base_url, fields } = draft
    const credential = accountCredential(owner, kind, draft, origins)
    if (credential === null) return yield* unknown
    const answer = yield* askForTokens(egress, credential, ask, () => true)
    const headers = kind.headers(answer.access, headerFields("oauth2", fields))
    const secrets = [answer.access, fieldOf(fields, "client_secret") ?? ""]
    const identity = yield* Effect.mapError(readIdentity(exchange, kind, base_url, headers, secrets), ({ message }) =>
      fail("OAUTH2_HANDSHAKE_FAILED", message)
    )
    const now = yield* Clock.currentTimeMillis
    const held = obtained(heldFor(credential, null), ask, answer, now)
    const account = {
      ...owner,
      provider_key: draft.provider_key,
      name: draft.name ?? (draft.isReconnected ? null : (identity.name ?? identity.email)),
      connection: "oauth2" as const,
      base_url,
      email: identity.email,
      external_account_id: identity.id,
      scopes: answer.scope === null ? draft.scopes : answer.scope.split(/[ ,]+/).filter((scope) => scope !== ""),
      fields,
      held,
      isReconnected: draft.isReconnected
    }
    yield* connectAccount(account, new Date(now))
    return held.refresh !== null
  })

  const consentOf = (state: string): Effect.Effect<AccountConsent | null, GatewayError, Database | Secrets> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => query(accountConsentOf(state, new Date(now))))

  /** `team_id` and `by`: the caller; null: a person who has confirmed on the page that shows the account. */
  const end = Effect.fnUntraced(function* (
    back: Back,
    caller: { readonly team_id: string; readonly by: string } | null
  ): Effect.fn.Return<{ readonly id: string; readonly renewable: boolean }, GatewayError, Database | Secrets> {
    const consent = yield* consentOf(back.state)
    const draft = consent === null ? null : draftOf(consent)
    if (consent === null || draft === null) return yield* unknown
    if (caller !== null && (caller.team_id !== consent.team_id || caller.by !== consent.begun_by)) return yield* unknown
    const { account_id: id, begun_by, team_id } = consent
    const kind = kindOf(draft.provider_key)?.account ?? null
    const credential = kind === null ? null : askedBy({ id, team_id }, kind, draft, origins)
    if (kind === null || credential === null) return yield* unknown
    const { renewable } = yield* endConsent(
      consentsOf(begun_by, draft),
      credential,
      { exchange: (_, ask) => connected(consent, draft, kind, ask) },
      { ...back, team_id }
    )
    return { id, renewable }
  })

  /** The account that the consent of this state is for; null: there is none. */
  const awaited = Effect.fnUntraced(function* (
    state: string
  ): Effect.fn.Return<AwaitedAccount | null, GatewayError, Database | Secrets> {
    const consent = yield* consentOf(state)
    const draft = consent === null ? null : draftOf(consent)
    if (consent === null || draft === null) return null
    const type = kindOf(draft.provider_key)?.name ?? draft.provider_key
    const { account_id: id, team_id, team_name } = consent
    return { id, name: draft.name ?? type, type, team_id, team_name }
  })

  return {
    start: (...asked: Parameters<typeof start>) => Effect.provideContext(start(...asked), services),
    end: (...asked: Parameters<typeof end>) => Effect.provideContext(end(...asked), services),
    awaited: (state: string) => Effect.provideContext(awaited(state), services)
  }
})
