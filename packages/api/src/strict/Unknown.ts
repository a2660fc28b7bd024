import type { Schema } from "effect"
import { ExactNumber } from "@tidegate/json/ExactNumber"
import type { FieldError } from "@tidegate/model/GatewayError"
import { didYouMean } from "@tidegate/model/NearestName"
import { type Lazy, membersOf, type ObjectShape, type Shape } from "./Shape.ts"

/** The largest number of faults that are reported for one body: nobody reads a longer list. */
export const maxFaults = 20
/** A longer path is cut to this length. */
export const longestPath = 200

/** How to check a body. */
export interface Looking {
  /** The shape for writing. */
  readonly written: Shape
  /** The shape of the same thing when it is read; its members may be sent back, and are not checked. Null: none. */
  readonly read: Shape | null
  /** Unknown names are removed silently. Otherwise names that the owners refuse themselves are left to them. */
  readonly isLenient: boolean
}

export interface Found {
  readonly faults: ReadonlyArray<FieldError>
  /** The value without its unknown members. */
  readonly known: Schema.JsonObject
}

/** Finds the unknown members of `body`, as deep as schemas name members. */
export const unknownMembers = (body: Schema.JsonObject, { isLenient, read, written }: Looking): Found => {
  const walk = new Walk(isLenient)
  const known = walk.value(body, written, read ?? [], null) as Schema.JsonObject
  return { faults: walk.faults, known }
}

/** The place of a value. */
interface Place {
  readonly within: Place | null
  readonly step: string | number
}

const pathOf = (place: Place | null): string => {
  let path = ""
  for (let at = place; at !== null; at = at.within) {
    const step = typeof at.step === "number" ? `[${at.step}]` : at.step
    path = path === "" || path.startsWith("[") ? `${step}${path}` : `${step}.${path}`
  }
  return path.slice(0, longestPath)
}

/** The alternatives that the value may be, by their identifying members; all of them when none matches. */
const meant = (value: Schema.JsonObject, shape: Shape): ReadonlyArray<ObjectShape> => {
  const objects = shape.filter((one) => one.kind === "object")
  const fits = ({ tags }: ObjectShape): boolean => {
    for (const [name, { isRequired, values }] of tags) {
      if (Object.hasOwn(value, name) ? !values.has(value[name]) : isRequired) return false
    }
    return true
  }
  const fitting = objects.length > 1 ? objects.filter(fits) : objects
  return fitting.length > 0 ? fitting : objects
}

const isFree = (shape: Shape): boolean => shape.some(({ kind }) => kind === "any")

/** Whether a number is possible for a value of this shape; a shape without alternatives is checked by its owner. */
const mayBeNumber = (shape: Shape): boolean =>
  shape.length === 0 || shape.some((one) => one.kind === "number" || (one.kind === "any" && one.isObject !== true))

const shapeOf = (lazy: Lazy | null | undefined): Shape => lazy?.() ?? []

class Walk {
  readonly faults: Array<FieldError> = []
  private readonly isLenient: boolean

  constructor(isLenient: boolean) {
    this.isLenient = isLenient
  }

  value(value: Schema.Json, written: Shape, read: Shape, place: Place | null): Schema.Json {
    if ((value as unknown) instanceof ExactNumber) {
      if (!mayBeNumber(written)) this.fault(place, "must not be a number")
      return value
    }
    if (typeof value !== "object" || value === null || written.length === 0 || isFree(written)) return value
    if (Array.isArray(value)) return this.list(value, written, read, place)
    return this.object(value as Schema.JsonObject, written, read, place)
  }

  private fault(place: Place | null, message: string): void {
    if (this.faults.length < maxFaults) this.faults.push({ path: pathOf(place), message })
  }

  private list(values: ReadonlyArray<Schema.Json>, written: Shape, read: Shape, place: Place | null): Schema.Json {
    const itemsOf = (shape: Shape) => shape.flatMap((one) => (one.kind === "array" ? one.items() : []))
    const items = itemsOf(written)
    if (items.length === 0 || isFree(items)) return values
    const others = itemsOf(read)
    let changed: Array<Schema.Json> | null = null
    for (const [step, value] of values.entries()) {
      const known = this.value(value, items, others, { within: place, step })
      if (known !== value) (changed ??= [...values])[step] = known
    }
    return changed ?? values
  }

  private object(value: Schema.JsonObject, written: Shape, read: Shape, place: Place | null): Schema.Json {
    const alternatives = meant(value, written)
    if (alternatives.length === 0) return value
    const isOwners = !this.isLenient && alternatives.every(({ isClosed }) => isClosed)
    const members = membersOf(alternatives)
    const rest = alternatives.flatMap((one) => shapeOf(one.rest))
    const hasRest = alternatives.some((one) => one.rest !== null)
    const readMembers = membersOf(read)
    const everywhere = membersOf(written)
    let isChanged = false
    const entries: Array<[string, Schema.Json]> = []
    for (const [name, inner] of Object.entries(value)) {
      const step = { within: place, step: name }
      const member = members.get(name)
      if (member === undefined && !hasRest) {
        // Members that are only read may be sent back. Members of another alternative have no meaning in this one.
        if (isOwners || (readMembers.has(name) && !everywhere.has(name))) {
          entries.push([name, inner])
          continue
        }
        if (!this.isLenient) this.fault(step, `is not known here${didYouMean(name, members.keys())}`)
        isChanged = true
        continue
      }
      const known = this.value(inner, member === undefined ? rest : member(), shapeOf(readMembers.get(name)), step)
      isChanged ||= known !== inner
      entries.push([name, known])
    }
    return isChanged ? Object.fromEntries(entries) : value
  }
}

/** Refuses unknown names; `about`: the message for a particular one. */
export const unknownNames = (
  written: Iterable<string>,
  known: ReadonlySet<string>,
  about: (name: string) => string | null
): ReadonlyArray<FieldError> =>
  [...written]
    .filter((name) => !known.has(name))
    .slice(0, maxFaults)
    .map((name) => ({
      path: name.slice(0, longestPath),
      message: about(name) ?? `is not a parameter of this call${didYouMean(name, known)}`
    }))
