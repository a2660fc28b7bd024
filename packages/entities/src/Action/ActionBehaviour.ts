import { Effect } from "effect"
import { action } from "@tidegate/resources/Action"
import { Actions } from "@tidegate/storage/Actions"
import { actorOf } from "../Actor.ts"
import { ActionEntity } from "./ActionProtocol.ts"

/** The saved action's actor. It holds nothing: runs read what they go by when they begin, and credentials when they call. */
export const layer = ActionEntity.toLayer(
  Effect.gen(function* () {
    return ActionEntity.of(yield* actorOf(action, yield* Actions))
  })
)
