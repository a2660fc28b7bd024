import { Context, Effect, Layer } from "effect"
import type { Egress } from "@tidegate/egress/Egress"
import type { Ingress } from "@tidegate/model/Ingress"
import type { Database } from "@tidegate/storage/Database"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { makeAccountConsents } from "./AccountConsent.ts"
import { makeAccountCredentials } from "./AccountCredentials.ts"
import { makeAccountRevocation } from "./AccountRevocation.ts"
import type { ProviderCalls } from "./ProviderCalls.ts"

const make = Effect.gen(function* () {
  const consents = yield* makeAccountConsents
  return { consents, connect: yield* makeAccountCredentials, revoke: yield* makeAccountRevocation }
})

/**
 * How provider accounts are connected and revoked. Any process does that: an account has no actor, and its row is locked or
 * claimed while it changes.
 */
export class ProviderAccounts extends Context.Service<ProviderAccounts, Effect.Success<typeof make>>()(
  "@tidegate/entities/ProviderAccounts"
) {
  static readonly layer: Layer.Layer<ProviderAccounts, never, Database | Egress | Ingress | ProviderCalls | Secrets> =
    Layer.effect(ProviderAccounts, make)
}
