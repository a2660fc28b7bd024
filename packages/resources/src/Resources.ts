import { connection } from "./Connection.ts"
import { destination } from "./Destination.ts"
import { source } from "./Source.ts"
import { transformation } from "./Transformation.ts"

/** Every resource that is declared. */
export const resources = [source, destination, connection, transformation] as const
