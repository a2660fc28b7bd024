import { Effect, Layer } from "effect"
import type { Sharding } from "effect/cluster"
import { HttpApiBuilder, type HttpApiGroup } from "effect/http-api"
import { entityOf } from "@tidegate/entities/Plain"
import type { Ingress } from "@tidegate/model/Ingress"
import type { AnyResource } from "@tidegate/resources/Resource"
import { plain, type PlainResource } from "@tidegate/resources/Resources"
import { PlainStores } from "@tidegate/storage/control/Stores"
import { Api } from "../contract/Api.ts"
import { handle } from "./Resource.ts"

type Handled<Plural extends string> = { [Name in Plural]: HttpApiGroup.Service<"tidegate", Name> }[Plural]

/** The handlers of the resources that their declarations define completely. */
export const layer = Layer.mergeAll(
  Layer.empty,
  ...(plain as ReadonlyArray<AnyResource>).map((resource) =>
    HttpApiBuilder.group(
      Api,
      resource.plural as "sources",
      Effect.fnUntraced(function* (handlers) {
        const [stores, client] = [yield* PlainStores, yield* entityOf(resource).client]
        return yield* handle(handlers, resource, stores(resource), client)
      })
    )
  )
) as unknown as Layer.Layer<Handled<PlainResource["plural"]>, never, Sharding.Sharding | PlainStores | Ingress>
