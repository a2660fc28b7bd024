import { Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import type { Ingress } from "@tidegate/model/Ingress"
import type { AnyResource } from "@tidegate/resources/Resource"
import { plain } from "@tidegate/resources/Resources"
import { PlainStores } from "@tidegate/storage/control/Stores"
import { actorOf } from "./Actor.ts"
import { protocolOf } from "./Protocol.ts"

const entities = (plain as ReadonlyArray<AnyResource>).map((resource) => [resource, protocolOf(resource)] as const)
const byName = new Map(entities.map(([{ name }, entity]) => [name, entity]))

/** The protocol of a resource that its declaration defines completely. */
export const entityOf = <R extends AnyResource>({ name }: R) =>
  byName.get(name) as unknown as ReturnType<typeof protocolOf<R>>

/** The actors of these resources: they run the commands, and nothing else. */
export const layer: Layer.Layer<never, never, Sharding.Sharding | PlainStores | Ingress> = Layer.mergeAll(
  Layer.empty,
  ...entities.map(([resource, entity]) =>
    entity.toLayer(
      Effect.flatMap(PlainStores, (stores) =>
        Effect.map(actorOf(resource, stores(resource)), (commands) => entity.of(commands as never))
      )
    )
  )
)
