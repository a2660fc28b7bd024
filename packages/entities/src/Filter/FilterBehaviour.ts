import { Effect } from "effect"
import { filter } from "@tidegate/resources/Filter"
import { Filters } from "@tidegate/storage/control/Filters"
import { actorOf } from "../Actor.ts"
import { FilterEntity } from "./FilterProtocol.ts"

/**
 * The stored filter's actor. It has no state; everything is in SQL. A change updates the filter and the connections that use it
 * in one transaction.
 */
export const layer = FilterEntity.toLayer(
  Effect.gen(function* () {
    return FilterEntity.of(yield* actorOf(filter, yield* Filters))
  })
)
