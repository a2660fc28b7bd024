import { type ExactNumber, isJsonObject } from "@tidegate/json/ExactNumber"
import { writeJson } from "@tidegate/json/NumberMarks"

/* Values of configuration files. */

export type Json =
  | string
  | number
  | ExactNumber
  | boolean
  | null
  | ReadonlyArray<Json>
  | { readonly [name: string]: Json }
export type JsonObject = { readonly [name: string]: Json }
export type Path = ReadonlyArray<string | number>

export const isObject = (value: unknown): value is JsonObject => isJsonObject(value)

/** A value as text, for a message. */
export const textOf = (value: Json | undefined): string =>
  typeof value === "string" ? value : (writeJson(value) ?? "")
