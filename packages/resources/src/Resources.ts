import { destination } from "./Destination.ts"
import { transformation } from "./Transformation.ts"

/** Every resource that is declared. */
export const resources = [destination, transformation] as const
