import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { DestinationEntity } from "@tidegate/entities/Destination/DestinationProtocol"
import { destination } from "@tidegate/resources/Destination"
import { Destinations } from "@tidegate/storage/Destinations"
import { Api } from "../contract/Api.ts"
import { handle } from "./Resource.ts"

/** Destinations: commands go to their entities, reads to the tables. */
export const layer = HttpApiBuilder.group(
  Api,
  "destinations",
  Effect.fnUntraced(function* (handlers) {
    return yield* handle(handlers, destination, yield* Destinations, yield* DestinationEntity.client)
  })
)
