import { action } from "./Action.ts"
import { connection } from "./Connection.ts"
import { destination } from "./Destination.ts"
import { filter } from "./Filter.ts"
import type { AnyResource } from "./Resource.ts"
import { source } from "./Source.ts"
import { transformation } from "./Transformation.ts"
import { workflow } from "./Workflow.ts"

/**
 * The resources that their declarations define completely, one per line: their stores, actors, groups and handlers are made from
 * this list.
 */
export const plain = [] as const satisfies ReadonlyArray<AnyResource>

export type PlainResource = (typeof plain)[number]

/** Every declared resource. */
export const resources = [filter, source, destination, transformation, connection, workflow, action, ...plain] as const
