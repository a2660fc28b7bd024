import { Context, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { Ingress } from "@tidegate/model/Ingress"
import type { AnyResource } from "@tidegate/resources/Resource"
import { plain } from "@tidegate/resources/Resources"
import { Actions } from "../workflows/Actions.ts"
import { Connections } from "./Connections.ts"
import { Destinations } from "./Destinations.ts"
import { Filters } from "./Filters.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { Sources } from "./Sources.ts"
import { makeStore, plainly, type Store } from "./Store.ts"
import { Transformations } from "./Transformations.ts"
import { Workflows } from "../workflows/Workflows.ts"

/** The stores of the resources that their declarations define completely. */
export class PlainStores extends Context.Service<PlainStores, <R extends AnyResource>(resource: R) => Store<R>>()(
  "@tidegate/storage/PlainStores"
) {
  static readonly layer: Layer.Layer<PlainStores, never, SqlClient.SqlClient | Secrets> = Layer.effect(
    PlainStores,
    Effect.gen(function* () {
      const stores = new Map<string, unknown>()
      for (const resource of plain as ReadonlyArray<AnyResource>) {
        stores.set(resource.name, yield* makeStore(resource, yield* plainly(resource)))
      }
      return PlainStores.of(<R extends AnyResource>({ name }: R): Store<R> => stores.get(name) as Store<R>)
    })
  )
}

/** The stores of all resources. */
export type Stores =
  | Actions
  | Filters
  | Sources
  | Destinations
  | Connections
  | Transformations
  | Workflows
  | PlainStores

export const layer: Layer.Layer<Stores, never, SqlClient.SqlClient | Secrets | Ingress> = Connections.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Actions.layer,
      Filters.layer,
      Sources.layer,
      Destinations.layer,
      Transformations.layer,
      Workflows.layer,
      PlainStores.layer
    )
  )
)
