import { Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { Ingress } from "@tidegate/model/Ingress"
import { Actions } from "../workflows/Actions.ts"
import { Connections } from "./Connections.ts"
import { Destinations } from "./Destinations.ts"
import { Filters } from "./Filters.ts"
import type { Secrets } from "../secrets/Secrets.ts"
import { Sources } from "./Sources.ts"
import { Transformations } from "./Transformations.ts"
import { Workflows } from "../workflows/Workflows.ts"

/** The stores of all resources. */
export type Stores = Actions | Filters | Sources | Destinations | Connections | Transformations | Workflows

export const layer: Layer.Layer<Stores, never, SqlClient.SqlClient | Secrets | Ingress> = Connections.layer.pipe(
  Layer.provideMerge(
    Layer.mergeAll(
      Actions.layer,
      Filters.layer,
      Sources.layer,
      Destinations.layer,
      Transformations.layer,
      Workflows.layer
    )
  )
)
