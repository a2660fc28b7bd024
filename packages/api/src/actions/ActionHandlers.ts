import { Effect, Predicate } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ProviderCalls } from "@tidegate/entities/accounts/ProviderCalls"
import { ActionEntity } from "@tidegate/entities/Action/ActionProtocol"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { action } from "@tidegate/resources/Action"
import { Actions } from "@tidegate/storage/workflows/Actions"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { mayCall } from "../SenderDomains.ts"
import { optionsOf } from "./ActionOptions.ts"
import { reader, type WithBody } from "../handlers/Calls.ts"
import { readJsonObject } from "../handlers/JsonBody.ts"
import { handle } from "../handlers/Resource.ts"
import { tagged } from "../handlers/Tagged.ts"

/** Loaded by the first call, together with the formatter: a gateway that does not use it does not have it in memory. */
const catalog = Effect.promise(() => import("@tidegate/actions/Manifest"))

const maxAsked = 65_536

export const layer = HttpApiBuilder.group(
  Api,
  "actions",
  Effect.fnUntraced(function* (handlers) {
    const actions = yield* Actions
    const reading = yield* reader
    const own = yield* SenderDomains
    const calls = yield* ProviderCalls
    const handled = yield* handle(handlers, action, Lists.actions, actions, yield* ActionEntity.client, {
      allowed: ({ config, inputs }) =>
        Effect.andThen(
          mayCall(own, inputs),
          mayCall(own, Predicate.hasProperty(config, "inputs") ? config.inputs : null)
        )
    })
    return handled
      .handleRaw("providers", ({ request }: { readonly request: HttpServerRequest.HttpServerRequest }) =>
        Effect.map(catalog, ({ manifest, manifestHash }) => tagged(request, JSON.stringify(manifestHash), manifest))
      )
      .handleRaw("options", ({ request }: WithBody) =>
        Effect.gen(function* () {
          const { id } = yield* CurrentTeam
          const asked = yield* readJsonObject(request, maxAsked)
          return yield* Effect.provideService(optionsOf(id, asked, actions, reading), ProviderCalls, calls)
        })
      )
  })
)
