import { Clock, Effect, type Schema } from "effect"
import type { AccountKind } from "@tidegate/channels/SourceProvider"
import { fail, type FieldError, type GatewayError, invalid } from "@tidegate/model/GatewayError"
import { didYouMean } from "@tidegate/model/NearestName"
import type { CredentialsInput } from "@tidegate/resources/ProviderAccountInput"
import { connectAccount } from "@tidegate/storage/accounts/AccountConnect"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { fieldOf } from "./AccountCredential.ts"
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
const faultsOf = ({ fields }: AccountKind, written: Schema.JsonObject): ReadonlyArray<FieldError> => {
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
    })
  ]
}

/** Connects accounts by their credentials, which the provider checks first. */
export const makeAccountCredentials = Effect.gen(function* () {
  const exchange = yield* makeProviderExchange
  const services = yield* Effect.context<Database | Secrets>()

  const connect = Effect.fnUntraced(function* (
    team_id: string,
    new_id: string,
    input: CredentialsInput
  ): Effect.fn.Return<{ readonly id: string }, GatewayError, Database | Secrets> {
    const { base_url, id, isReconnected, kind, provider } = yield* accountPlace(team_id, new_id, input, "api_key")
    const faults = faultsOf(kind, input.credentials)
    if (faults.length > 0) return yield* invalid(faults)
    const fields = Object.fromEntries(Object.entries(input.credentials).filter(([, value]) => value !== null))
    const headers = kind.headers(fieldOf(fields, "token") ?? "", fields)
    const secrets = Object.values(fields).filter((value) => typeof value === "string")
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
      held: {},
      isReconnected
    }
    yield* connectAccount(account, new Date(yield* Clock.currentTimeMillis))
    return { id }
  })

  return (...asked: Parameters<typeof connect>) => Effect.provideContext(connect(...asked), services)
})
