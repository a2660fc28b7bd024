import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KnownProviders } from "@tidegate/channels/KnownProviders"
import { ProviderAccounts } from "@tidegate/entities/accounts/ProviderAccounts"
import { notFound } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import type { Caller } from "@tidegate/model/Session"
import { consentBackBody, consentBody, credentialsBody } from "@tidegate/resources/ProviderAccountInput"
import { getAccount, listAccounts } from "@tidegate/storage/accounts/AccountReads"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import * as Lists from "../contract/Lists.ts"
import { idOfCall } from "../CallIds.ts"
import { carriedThrough, reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { pageOf } from "../handlers/ListInput.ts"

const largestBody = 262_144

/** The session or the key of a call: only the same one may end the consent that it began. */
const callerOf = (caller: Caller): string =>
  caller.kind === "key" ? `key ${caller.key.id}` : `session ${caller.signedIn.tokenHash}`

export const layer = HttpApiBuilder.group(
  Api,
  "provider-accounts",
  Effect.fnUntraced(function* (handlers) {
    const reading = yield* reader
    const { connect, consents, revoke } = yield* ProviderAccounts
    const providers = yield* KnownProviders
    const isKnown = (key: string): boolean => providers.some((provider) => provider.key === key)
    const shown = (team_id: string, id: string) => reading(getAccount(team_id, id, isKnown))

    return handlers
      .handle("list", ({ query }) =>
        Effect.gen(function* () {
          const { id: team } = yield* CurrentTeam
          return yield* reading(listAccounts(team, yield* pageOf(Lists.providerAccounts, query, { team }), isKnown))
        })
      )
      .handle("retrieve", ({ params }) => Effect.flatMap(CurrentTeam, ({ id }) => shown(id, params.id)))
      .handleRaw("startConsent", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { caller, id: team_id } = yield* CurrentTeam
          const input = yield* Effect.fromResult(consentBody.judge(yield* readJsonObject(request, largestBody)))
          const id = yield* idOfCall(prefixes.providerAccount)
          return yield* carriedThrough(consents.start(team_id, callerOf(caller), id, input))
        })
      )
      .handleRaw("endConsent", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { caller, id: team_id } = yield* CurrentTeam
          const input = yield* Effect.fromResult(consentBackBody.judge(yield* readJsonObject(request, largestBody)))
          const back = { state: input.state, code: input.code ?? null, error: input.error ?? null }
          const { id } = yield* carriedThrough(consents.end(back, { team_id, by: callerOf(caller) }))
          return yield* shown(team_id, id)
        })
      )
      .handleRaw("connect", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const input = yield* Effect.fromResult(credentialsBody.judge(yield* readJsonObject(request, largestBody)))
          const { id } = yield* carriedThrough(connect(team_id, yield* idOfCall(prefixes.providerAccount), input))
          return yield* shown(team_id, id)
        })
      )
      .handle("revoke", ({ params: { id } }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          if (!isId(prefixes.providerAccount, id)) return yield* notFound("provider_account", id)
          return yield* carriedThrough(revoke(team_id, id))
        })
      )
  })
)
