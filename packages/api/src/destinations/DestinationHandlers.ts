import { Clock, Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { ProviderAccounts } from "@tidegate/entities/accounts/ProviderAccounts"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { fail, statusOf } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { destination } from "@tidegate/resources/Destination"
import { Destinations } from "@tidegate/storage/control/Destinations"
import { awaitedBy as destinationAwaiting } from "@tidegate/storage/delivery/DestinationTokens"
import { Api } from "../contract/Api.ts"
import * as Lists from "../contract/Lists.ts"
import { messageHandlers } from "./MessageHandlers.ts"
import { testHandler } from "./TestHandlers.ts"
import type { ConsentQuery } from "./DestinationsApi.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import {
  type Asking,
  askingPage,
  confirmationOf,
  ConsentKey,
  endedPage,
  failedPage,
  isConfirmation
} from "../ConsentPage.ts"
import { Credentials } from "../Credentials.ts"
import { mayWrite } from "../SenderDomains.ts"
import { askOwner, carriedThrough, read, reader } from "../handlers/Calls.ts"
import { handle } from "../handlers/Resource.ts"

const unknown = fail("OAUTH2_STATE_INVALID", "the consent was not started here, or has ended already: start it again")

/** Destinations: commands go to their actors, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "destinations",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* DestinationEntity.client
    const destinations = yield* Destinations
    const reading = yield* reader
    const { stranger } = yield* Credentials
    const own = yield* SenderDomains
    const consentKey = yield* ConsentKey
    const { consents } = yield* ProviderAccounts
    const messages = yield* messageHandlers
    const test = yield* testHandler
    const handled = yield* handle(handlers, destination, Lists.destinations, destinations, client, {
      allowed: (written, id) =>
        Effect.flatMap(CurrentTeam, ({ caller, id: team_id }) =>
          mayWrite(own, caller, written, id === null ? null : read(destinations.get(team_id, id)))
        )
    })

    /** What the consent of this state is for; null: there is none. */
    const awaitedBy = Effect.fnUntraced(function* (id: string, state: string, now: number) {
      if (isId(prefixes.providerAccount, id)) {
        const account = yield* read(consents.awaited(state))
        return account === null ? null : ({ what: "account", ...account } satisfies Asking)
      }
      if (!isId(prefixes.destination, id)) return null
      const destination = yield* reading(destinationAwaiting(id, state, new Date(now)))
      return destination === null ? null : ({ what: "destination", ...destination } satisfies Asking)
    })

    /**
     * Handles a person whom a provider has redirected back. The code that they bring is used only after they confirm on the page
     * shown here, even when the request claims not to come from a browser: an image or a link on another page leads here too.
     * Without a code there is nothing to confirm.
     */
    const back = (
      { code = "", confirmed, error = "", state = "" }: ConsentQuery,
      { headers }: HttpServerRequest.HttpServerRequest,
      isPost: boolean
    ) => {
      const isBrowser = headers["accept"]?.includes("text/html") === true
      const ended = Effect.gen(function* () {
        const [id = ""] = state.split(".")
        const now = yield* Clock.currentTimeMillis
        // No actor is started for an unknown state; guesses count like wrong credentials.
        const awaited = yield* awaitedBy(id, state, now)
        if (awaited === null) return yield* Effect.andThen(stranger, unknown)
        if (code !== "") {
          const brought = { state, code }
          // Browsers name the page that sent it: only our own page has shown whom the consent is for.
          const isOwn = (headers["sec-fetch-site"] ?? "same-origin") === "same-origin"
          if (!isPost || !isOwn || !isConfirmation(consentKey, brought, confirmed, now)) {
            return askingPage(awaited, brought, confirmationOf(consentKey, brought, now))
          }
        }
        const { team_id } = awaited
        const brought = { code: code === "" ? null : code, error: error === "" ? null : error }
        const { renewable } =
          awaited.what === "account"
            ? yield* carriedThrough(consents.end({ state, ...brought }, null))
            : yield* askOwner(client(id).EndConsent({ team_id, state, ...brought }))
        const named = awaited.what === "account" ? { provider_account_id: id } : { destination_id: id }
        return isBrowser
          ? endedPage(awaited, renewable)
          : HttpServerResponse.jsonUnsafe({ authorized: true, ...named, renewable })
      })
      return isBrowser
        ? Effect.catchTag(ended, "GatewayError", ({ code, message }) =>
            Effect.succeed(failedPage(statusOf[code], message))
          )
        : ended
    }

    return handled
      .handle("startConsent", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id } = yield* reading(destinations.get(team_id, params.id))
          return yield* askOwner(client(id).StartConsent({ team_id }))
        })
      )
      .handleRaw("test", test)
      .handleRaw("pullMessages", messages.pull)
      .handleRaw("ackMessages", messages.ack)
      .handleRaw("nackMessages", messages.nack)
      .handle("showConsent", ({ query, request }) => back(query, request, false))
      .handle("endConsent", ({ query, request }) => back(query, request, true))
  })
)
