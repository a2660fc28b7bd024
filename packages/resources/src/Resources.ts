import { transformation } from "./Transformation.ts"

/** Every resource that is declared. */
export const resources = [transformation] as const
