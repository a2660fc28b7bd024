import { action } from "./Action.ts"
import { connection } from "./Connection.ts"
import { destination } from "./Destination.ts"
import { filter } from "./Filter.ts"
import { source } from "./Source.ts"
import { transformation } from "./Transformation.ts"
import { workflow } from "./Workflow.ts"

/** Every resource that is declared. */
export const resources = [filter, source, destination, transformation, connection, workflow, action] as const
