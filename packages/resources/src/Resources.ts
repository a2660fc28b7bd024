import { connection } from "./Connection.ts"
import { source } from "./Source.ts"
import { transformation } from "./Transformation.ts"

/** Every resource that is declared. */
export const resources = [source, connection, transformation] as const
