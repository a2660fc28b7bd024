import { Effect, type Schema } from "effect"
import type { Access, BrokerSource } from "@tidegate/connectors/BrokerSource"
import { SessionFailure } from "@tidegate/connectors/Failure"
import { ApiOrigins } from "@tidegate/connectors/Origins"
import type { Bearer } from "@tidegate/connectors/Subscriptions"
import { compileOutboundAuth } from "@tidegate/outbound-auth/OutboundAuth"
import type { HeldSubscription } from "@tidegate/storage/subscriptions/SubscriptionWork"
import { credentialOf } from "../tokens/Credential.ts"
import { makeSharedTokens } from "../tokens/SharedTokens.ts"
import type { NotObtained } from "../tokens/TokenAnswers.ts"

const notGiven = ({ message }: NotObtained): SessionFailure =>
  new SessionFailure({ code: "OAUTH2_HANDSHAKE_FAILED", message, final: false, broken: true })

/** What subscriptions have beside their settings: tokens that are renewed while a subscription lasts, and where APIs are. */
export const makeAccess = Effect.gen(function* () {
  const origins = yield* ApiOrigins
  const tokensOf = yield* makeSharedTokens
  const run = Effect.runPromiseWith(yield* Effect.context())

  return Effect.fnUntraced(function* (
    { auth_type, source_id, team_id }: HeldSubscription,
    { scope }: BrokerSource,
    auth: Schema.JsonObject
  ): Effect.fn.Return<Access> {
    const { grant } = compileOutboundAuth({ auth_type, auth })
    if (grant === undefined) return { bearer: null, origins }
    const credential = credentialOf({ id: source_id, team_id }, grant, scope ?? null, origins)
    const tokens = yield* tokensOf(credential)
    const bearer: Bearer = (refused) => {
      const token = refused === null ? tokens.obtain(credential) : tokens.renewed(credential, refused)
      return run(
        Effect.match(token, { onFailure: notGiven, onSuccess: (given): string | null => given?.value ?? null })
      )
    }
    return { bearer, origins }
  })
})
