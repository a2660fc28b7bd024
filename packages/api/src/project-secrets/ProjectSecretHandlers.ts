import { Effect, Result } from "effect"
import type { Sharding } from "effect/cluster"
import { HttpApiBuilder } from "effect/http-api"
import { reloadDestinations } from "@tidegate/entities/dispatch/WakeUps"
import { invalid } from "@tidegate/model/GatewayError"
import { prepareSigningSecret, whsecOf } from "@tidegate/outbound-auth/DeliverySignature"
import type { Database } from "@tidegate/storage/Database"
import {
  newApiKey,
  type NewSecrets,
  newSigningSecret,
  projectSecrets,
  replaceSecrets,
  signedDestinations
} from "@tidegate/storage/teams/ProjectSecrets"
import type { Secrets } from "@tidegate/storage/secrets/Secrets"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { rotated, written } from "./ProjectSecretsApi.ts"
import { read, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject, readJsonObjectIfAny } from "../handlers/JsonBody.ts"

export const layer = HttpApiBuilder.group(
  Api,
  "project-secrets",
  Effect.fnUntraced(function* (handlers) {
    const services = yield* Effect.context<Database | Secrets | Sharding.Sharding>()

    /**
     * Stores the secrets, and has every signing destination load them. A destination that does not answer in time loads them
     * later: the answer is returned anyway, because it may contain values that cannot be read again, and both secrets are valid
     * meanwhile.
     */
    const replace = (team: string, secrets: NewSecrets) =>
      Effect.gen(function* () {
        const replaced = yield* read(replaceSecrets(team, secrets))
        if (secrets.signing_secret !== undefined) {
          yield* Effect.ignore(reloadDestinations(yield* read(signedDestinations(team))), { log: "Warn" })
        }
        return replaced
      }).pipe(Effect.provideContext(services))

    return handlers
      .handle("retrieve", () =>
        Effect.flatMap(CurrentTeam, ({ id }) => read(Effect.provideContext(projectSecrets(id), services)))
      )
      .handleRaw("replace", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { id } = yield* CurrentTeam
          const secrets = yield* Effect.fromResult(written.judge(yield* readJsonObject(request)))
          if (secrets.signing_secret !== undefined) {
            const prepared = prepareSigningSecret(secrets.signing_secret)
            if (Result.isFailure(prepared)) yield* invalid([{ path: "signing_secret", message: prepared.failure }])
          }
          return yield* replace(id, secrets)
        })
      )
      .handleRaw("rotate", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { id } = yield* CurrentTeam
          const { rotate = ["api_key", "signing_secret"] } = yield* Effect.fromResult(
            rotated.judge(yield* readJsonObjectIfAny(request))
          )
          const values = {
            ...(rotate.includes("api_key") ? { api_key: newApiKey() } : {}),
            ...(rotate.includes("signing_secret") ? { signing_secret: newSigningSecret() } : {})
          }
          const { api_key, signing_secret, ...pair } = yield* replace(id, values)
          return {
            ...pair,
            api_key: { ...api_key, ...(values.api_key === undefined ? {} : { value: values.api_key }) },
            signing_secret: {
              ...signing_secret,
              ...(values.signing_secret === undefined
                ? {}
                : { value: values.signing_secret, whsec_value: whsecOf(values.signing_secret) })
            }
          }
        })
      )
  })
)
