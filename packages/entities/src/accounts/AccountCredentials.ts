import { Clock, Effect, type Schema } from "effect"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import { Egress } from "@tidegate/egress/Egress"
import { fail, type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { didYouMean } from "@tidegate/model/NearestName"
import type { CredentialsInput } from "@tidegate/resources/ProviderAccountInput"
import { connectAccount } from "@tidegate/storage/accounts/AccountConnect"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import type { Credential } from "../tokens/Credential.ts"
import { heldFor, obtained } from "../tokens/Held.ts"
import { askForTokens } from "../tokens/TokenEndpoint.ts"
import { appCredential, fieldOf } from "./AccountCredential.ts"
import { readIdentity } from "./AccountIdentity.ts"
import { accountPlace } from "./AccountPlace.ts"
import { makeProviderExchange } from "./ProviderExchange.ts"

const longestField = 16_384

/** Why a field cannot be stored, or sent in a header; null: it can. */
const faultOf = (value: Schema.Json): string | null => {
  if (typeof value !== "string") return "must be a string"
  if (value.trim() === "" || value.length > longestField) return `must be 1 to ${longestField} characters`
  return /^[\x20-\x7e]+$/.test(value) ? null : "must be printable ASCII characters"
}

/** The faults of the written credentials, by the fields of the provider's row. */
const faultsOf = ({ appTokens, fields }: AccountKind, written: Schema.JsonObject): ReadonlyArray<FieldError> => {
  const names = fields.map(({ key }) => key)
  const unknown = Object.keys(written).filter((name) => !names.includes(name))
  return [
    ...unknown.map((name) => ({
      path: `credentials.${name.slice(0, 100)}`,
      message: `is not known here${didYouMean(name, names)}`
    })),
    ...fields.flatMap(({ key, required }) => {
      const value = written[key] ?? null
      const message = value === null ? (required ? "is required" : null) : faultOf(value)
      return message === null ? [] : [{ path: `credentials.${key}`, message }]
    }),
    // Which of both is used would not be clear.
    ...(appTokens !== undefined &&
    ((written["token"] ?? null) === null) === ((written["client_secret"] ?? null) === null)
      ? [{ path: "credentials.client_secret", message: "give either it or token" }]
      : [])
  ]
}

/** Connects accounts by their credentials, which the provider checks first. */
export const makeAccountCredentials = Effect.gen(function* () {
  const egress = yield* Egress
  const origins = yield* ApiOrigins
  const exchange = yield* makeProviderExchange
  const services = yield* Effect.context<Database | Secrets>()

  /** The first token of an account that gets its tokens itself: that it gets one shows that the provider accepts its credentials. */
  const tokenBy = Effect.fnUntraced(function* (
    credential: Credential
  ): Effect.fn.Return<{ readonly held: Schema.JsonObject; readonly token: string }, GatewayError> {
    const ask = { kind: "own" } as const
    const answer = yield* Effect.mapError(
      askForTokens(egress, credential, ask, () => true),
      ({ message, refused }) => fail(refused ? "PROVIDER_REFUSED" : "PROVIDER_FAILED", message)
    )
    const now = yield* Clock.currentTimeMillis
    return { held: { ...obtained(heldFor(credential, null), ask, answer, now) }, token: answer.access }
  })

  const connect = Effect.fnUntraced(function* (
    team_id: string,
    new_id: string,
    input: CredentialsInput
  ): Effect.fn.Return<{ readonly id: string }, GatewayError, Database | Secrets> {
    const { base_url, id, isReconnected, kind, provider } = yield* accountPlace(team_id, new_id, input, "api_key")
    const faults = faultsOf(kind, input.credentials)
    if (faults.length > 0) return yield* invalid(faults)
    const fields = Object.fromEntries(Object.entries(input.credentials).filter(([, value]) => value !== null))
    const credential = appCredential({ id, team_id }, kind, fields, origins)
    const { held, token } =
      credential === null ? { held: {}, token: fieldOf(fields, "token") ?? "" } : yield* tokenBy(credential)
    const headers = kind.headers(token, fields)
    const secrets = [token, ...Object.values(fields).filter((value) => typeof value === "string")]
    const identity = yield* Effect.mapError(
      readIdentity(exchange, kind, base_url, headers, secrets),
      ({ message, permanent }) => fail(permanent ? "PROVIDER_REFUSED" : "PROVIDER_FAILED", message)
    )
    const account = {
      id,
      team_id,
      provider_key: provider.key,
      name: input.name ?? (isReconnected ? null : (identity.name ?? identity.email)),
      connection: "api_key" as const,
      base_url,
      email: identity.email,
      external_account_id: identity.id,
      scopes: [],
      fields,
      held,
      isReconnected
    }
    yield* connectAccount(account, new Date(yield* Clock.currentTimeMillis))
    return { id }
  })

  return (...asked: Parameters<typeof connect>) => Effect.provideContext(connect(...asked), services)
})
