import { Clock, Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { SenderDomains } from "@tidegate/connectors/SenderDomains"
import { fail, statusOf } from "@tidegate/model/GatewayError"
import { isId, prefixes } from "@tidegate/model/Ids"
import { destination } from "@tidegate/resources/Destination"
import { Destinations } from "@tidegate/storage/Destinations"
import { awaitedBy } from "@tidegate/storage/DestinationTokens"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { askingPage, confirmationOf, endedPage, failedPage } from "../ConsentPage.ts"
import { Credentials } from "../Credentials.ts"
import { mayWrite } from "../SenderDomains.ts"
import { askOwner, read, reader } from "./Calls.ts"
import { handle } from "./Resource.ts"

const unknown = fail("OAUTH2_STATE_INVALID", "the consent was not begun here, or has ended already: start it again")

/** Destinations: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "destinations",
  Effect.fnUntraced(function* (handlers) {
    const client = yield* DestinationEntity.client
    const destinations = yield* Destinations
    const reading = yield* reader
    const { stranger } = yield* Credentials
    const own = yield* SenderDomains
    const handled = yield* handle(handlers, destination, destinations, client, {
      allowed: (written, id) =>
        Effect.flatMap(CurrentTeam, ({ caller, id: team_id }) =>
          mayWrite(own, caller, written, id === null ? null : read(destinations.get(team_id, id)))
        )
    })

    return handled
      .handle("startConsent", ({ params }) =>
        Effect.gen(function* () {
          const { id: team_id } = yield* CurrentTeam
          const { id } = yield* reading(destinations.get(team_id, params.id))
          return yield* askOwner(client(id).StartConsent({ team_id }))
        })
      )
      .handle("endConsent", ({ query: { code = null, confirmed, error = null, state = "" }, request }) => {
        const isBrowser = request.headers["accept"]?.includes("text/html") === true
        const ended = Effect.gen(function* () {
          const [id = ""] = state.split(".")
          const now = new Date(yield* Clock.currentTimeMillis)
          // No actor is started for a state that nobody waits for; guesses are counted as wrong credentials are.
          const awaited = isId(prefixes.destination, id) ? yield* reading(awaitedBy(id, state, now)) : null
          if (awaited === null) return yield* Effect.andThen(stranger, unknown)
          if (isBrowser && code !== null && confirmed !== confirmationOf(state, code)) {
            return askingPage(awaited, state, code)
          }
          const { team_id } = awaited
          const { renewable } = yield* askOwner(client(id).EndConsent({ team_id, state, code, error }))
          return isBrowser
            ? endedPage(awaited, renewable)
            : { authorized: true as const, destination_id: id, renewable }
        })
        return isBrowser
          ? Effect.catchTag(ended, "GatewayError", ({ code, message }) =>
              Effect.succeed(failedPage(statusOf[code], message))
            )
          : ended
      })
  })
)
