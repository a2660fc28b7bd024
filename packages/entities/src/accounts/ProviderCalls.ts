import { Clock, Context, Effect, Layer } from "effect"
import type { Call, ProviderAnswer, ProviderRequest } from "@tidegate/channels/Adapter"
import { ProviderError } from "@tidegate/channels/Adapter"
import type { AccountKind, SourceProvider } from "@tidegate/channels/SourceProvider"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import type { Egress } from "@tidegate/egress/Egress"
import { Echoes } from "@tidegate/redaction/Echoes"
import { failAccount, healAccount, openAccount, type OpenedAccount } from "@tidegate/storage/accounts/ProviderAccounts"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Credential } from "../tokens/Credential.ts"
import type { Token } from "../tokens/KnownToken.ts"
import type { NotObtained } from "../tokens/TokenAnswers.ts"
import { credentialFor, fieldOf, headerFields } from "./AccountCredential.ts"
import { makeAccountTokens } from "./AccountTokens.ts"
import { makeProviderExchange, passing, refused } from "./ProviderExchange.ts"

/** Whose credentials a call to a provider carries. */
export interface CallOwner {
  readonly team_id: string
  readonly provider: SourceProvider
  /** Null: calls carry no credentials. */
  readonly account_id: string | null
  /** The account is being revoked: its last calls are made although it is disabled. */
  readonly isEnding?: true
}

/**
 * Sends requests to providers through the guarded egress, with the credentials of the account. Credentials are sent only to the
 * account's origin; otherwise the call fails and nothing is sent.
 */
export class ProviderCalls extends Context.Service<
  ProviderCalls,
  {
    readonly of: (owner: CallOwner) => Call
    /** The base URL of the API for this account: its `base_url`, or the origin of the provider's row. */
    readonly baseUrl: (owner: CallOwner) => Effect.Effect<string>
  }
>()("@tidegate/entities/ProviderCalls") {
  static readonly layer: Layer.Layer<ProviderCalls, never, Database | Egress | Secrets> = Layer.effect(
    ProviderCalls,
    Effect.suspend(() => make)
  )
}

const noToken = ({ message, refused: isRefused, waitMs }: NotObtained): ProviderError =>
  isRefused ? refused("ACCOUNT_UNAUTHORIZED", message) : passing("PROVIDER_UNAVAILABLE", message, waitMs)

const unreadable = (message: string) => refused("ACCOUNT_UNAUTHORIZED", message)

/** One try to call with the account's credentials. */
type Send = (token: string) => Effect.Effect<ProviderAnswer, ProviderError>

const make = Effect.gen(function* () {
  const origins = yield* ApiOrigins
  const exchange = yield* makeProviderExchange
  const tokensOf = yield* makeAccountTokens
  const services = yield* Effect.context<Database | Secrets>()

  const opened = (team_id: string, id: string) =>
    Effect.provideContext(openAccount(team_id, id), services).pipe(
      Effect.catchTag("SecretUnreadable", (cause) =>
        Effect.andThen(
          Effect.logError(
            "a provider account cannot be used: its credentials cannot be read",
            { account_id: id },
            cause
          ),
          unreadable("the account's credentials cannot be read: connect it again")
        )
      )
    )

  const databaseAway = (cause: unknown) =>
    Effect.andThen(
      Effect.logWarning("a provider account cannot be read or changed", cause),
      passing("PROVIDER_UNREACHABLE", "the gateway cannot read the account")
    )

  /** The account, if its credentials may be used. Fails closed: nothing is sent for another one. */
  const usable = Effect.fnUntraced(function* (
    { isEnding, provider, team_id }: CallOwner,
    account_id: string
  ): Effect.fn.Return<OpenedAccount, ProviderError> {
    const account = yield* Effect.catchTag(opened(team_id, account_id), "SqlError", databaseAway)
    if (account === null || account.provider_key !== provider.key) {
      return yield* unreadable("the account does not exist, or belongs to another provider")
    }
    if (isEnding !== true && (account.revoked_at !== null || account.disabled_at !== null)) {
      return yield* unreadable("the account is revoked: connect it again")
    }
    return account
  })

  /** A fact about the account. That it cannot be stored does not change the call's result: the next call finds it again. */
  const note = (fact: ReturnType<typeof failAccount>): Effect.Effect<void> =>
    Effect.catch(Effect.provideContext(fact, services), (cause) =>
      Effect.logWarning("the state of a provider account cannot be stored", cause)
    )
  const noteFailure = (account: OpenedAccount, message: string) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => note(failAccount(account, message, new Date(now))))
  const noteSuccess = (account: OpenedAccount, { status }: ProviderAnswer) =>
    account.failed_at === null || status >= 400
      ? Effect.void
      : Effect.flatMap(Clock.currentTimeMillis, (now) => note(healAccount(account, new Date(now))))

  const turnedAway = (account: OpenedAccount) => noteFailure(account, "the provider refuses the credentials: HTTP 401")

  const withKey = Effect.fnUntraced(function* (account: OpenedAccount, send: Send) {
    const answer = yield* send(fieldOf(account.fields, "token") ?? "")
    if (answer.status === 401) yield* turnedAway(account)
    return answer
  })

  /** A token that the provider does not accept any more is renewed once. */
  const withToken = Effect.fnUntraced(function* (account: OpenedAccount, credential: Credential, send: Send) {
    const tokens = yield* tokensOf(account, credential)
    const obtained = <A>(token: Effect.Effect<A, NotObtained>) =>
      token.pipe(
        Effect.tapError(({ message, refused: isRefused }) => (isRefused ? noteFailure(account, message) : Effect.void)),
        Effect.mapError(noToken)
      )
    const { value }: Token = yield* obtained(tokens.obtain(credential))
    const first = yield* send(value)
    if (first.status !== 401) {
      tokens.accepted()
      return first
    }
    const another = yield* obtained(tokens.renewed(credential, value))
    const second = another === null ? first : yield* send(another.value)
    if (second.status === 401) yield* turnedAway(account)
    else tokens.accepted()
    return second
  })

  const authorized = Effect.fnUntraced(function* (
    owner: CallOwner,
    kind: AccountKind,
    account_id: string,
    request: ProviderRequest
  ): Effect.fn.Return<ProviderAnswer, ProviderError> {
    const account = yield* usable(owner, account_id)
    const { base_url, connection, fields } = account
    if (URL.parse(request.url)?.origin !== new URL(base_url).origin) {
      return yield* refused("ACCOUNT_ORIGIN_REFUSED", "the request leads to an origin that is not the account's")
    }
    const secrets = Object.values(fields).filter((value) => typeof value === "string")
    const send: Send = (token) => {
      const headers = { ...request.headers, ...kind.headers(token, headerFields(connection, fields)) }
      return exchange({ ...request, headers, echoes: Echoes.of([token, ...secrets]) })
    }
    const credential = credentialFor(account, kind, origins)
    const answer = yield* credential === null ? withKey(account, send) : withToken(account, credential, send)
    yield* noteSuccess(account, answer)
    return answer
  })

  return ProviderCalls.of({
    of: (owner) => (request) => {
      const { account_id, provider } = owner
      return request.authorized && account_id !== null && provider.account !== null
        ? authorized(owner, provider.account, account_id, request)
        : exchange(request)
    },
    baseUrl: ({ account_id, provider, team_id }) =>
      account_id === null
        ? Effect.succeed(provider.account?.origin ?? "")
        : opened(team_id, account_id).pipe(
            Effect.catchTag("ProviderError", () => Effect.succeed(null)),
            Effect.orDie,
            Effect.map((account) => account?.base_url ?? provider.account?.origin ?? "")
          )
  })
})
