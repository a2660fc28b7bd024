import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { destination } from "@tidegate/resources/Destination"
import { Destinations } from "@tidegate/storage/Destinations"
import { Api } from "../contract/Api.ts"
import { CurrentTeam } from "../contract/Authorization.ts"
import { mayWrite, SenderDomains } from "../SenderDomains.ts"
import { read } from "./Calls.ts"
import { handle } from "./Resource.ts"

/** Destinations: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "destinations",
  Effect.fnUntraced(function* (handlers) {
    const store = yield* Destinations
    const own = yield* SenderDomains
    return yield* handle(handlers, destination, store, yield* DestinationEntity.client, {
      allowed: (written, id) =>
        Effect.flatMap(CurrentTeam, ({ caller, id: team_id }) =>
          mayWrite(own, caller, written, id === null ? null : read(store.get(team_id, id)))
        )
    })
  })
)
