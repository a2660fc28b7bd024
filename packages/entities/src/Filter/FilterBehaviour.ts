import { Effect } from "effect"
import { filter } from "@tidegate/resources/Filter"
import { Filters } from "@tidegate/storage/control/Filters"
import { actorOf } from "../Actor.ts"
import { FilterEntity } from "./FilterProtocol.ts"

/** The stored filter's actor. It holds nothing: what it knows is in SQL, and what its change means to connections is one transaction. */
export const layer = FilterEntity.toLayer(
  Effect.gen(function* () {
    return FilterEntity.of(yield* actorOf(filter, yield* Filters))
  })
)
