import { action } from "./Action.ts"
import { connection } from "./Connection.ts"
import { destination } from "./Destination.ts"
import { filter } from "./Filter.ts"
import type { AnyResource } from "./Resource.ts"
import { source } from "./Source.ts"
import { transformation } from "./Transformation.ts"
import { workflow } from "./Workflow.ts"

/**
 * The resources that are said by their declarations alone, one a line: their stores, actors, groups and handlers are made of this
 * list.
 */
export const plain = [] as const satisfies ReadonlyArray<AnyResource>

export type PlainResource = (typeof plain)[number]

/** Every resource that is declared. */
export const resources = [filter, source, destination, transformation, connection, workflow, action, ...plain] as const
