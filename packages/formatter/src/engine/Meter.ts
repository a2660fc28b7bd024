import { isExactNumber } from "@tidegate/json/ExactNumber"
import { visitJson } from "@tidegate/json/VisitJson"
import { Fault, tooMuch } from "./Fault.ts"
import { elementMicros, limits, totalMicros } from "./Limits.ts"
import type { Operation, Output } from "./Operation.ts"

/**
 * Counts time by the operation's declared cost instead of a clock: the same inputs have the same cost and the same result on a fast machine and
 * on a slow one. The costs were measured with `benchmarks` and the hostile inputs of the tests.
 */
export class Meter {
  #left = totalMicros
  #ofElement = elementMicros
  /** Another element begins, with its full limit; unused time of the one before is lost. */
  readonly begin = (): void => {
    this.#ofElement = elementMicros
  }
  readonly spend = (micros: number): void => {
    this.#left -= micros
    this.#ofElement -= micros
    if (this.#left < 0 || this.#ofElement < 0) {
      const limit = this.#left < 0 ? limits.cpu_ms : elementMicros / 1000
      throw new Fault("FORMATTER_TIMEOUT", "this takes longer than is allowed", { limit })
    }
  }
}

/** Maximum characters of an element's texts together: the operation's own limit, or what its cost allows. */
export const charactersOf = ({ cost, limits: own }: Operation): number =>
  own["characters"] ?? Math.floor(((elementMicros - cost.call) * 1000) / cost.character)

/** Characters of all texts in a value, at any depth. */
export const charactersIn = (given: object): number => {
  let characters = 0
  visitJson(given, (value) => {
    if (typeof value === "string") characters += value.length
    else if (isExactNumber(value)) characters += String(value).length
    return true
  })
  return characters
}

/** The cost of an element with this many characters, in microseconds. Throws a `Fault` above the limit. */
export const withinElement = (operation: Operation, length: number): number => {
  const most = charactersOf(operation)
  if (length > most) throw tooMuch("the input has too many characters for this operation", most, length)
  return operation.cost.call + (operation.cost.character * length) / 1000
}

/** Throws a `Fault` if an output exceeds the size limit. */
export const withinOutput = (output: Output): void => {
  let least = 0
  let most = 0
  visitJson(output, (value, name) => {
    if (name !== null) {
      least += name.length + 4
      most += name.length * 6 + 4
    }
    if (typeof value === "string") {
      least += value.length + 2
      most += value.length * 6 + 2
    } else if (Array.isArray(value)) {
      least += value.length
      most += value.length
    } else if (isExactNumber(value)) {
      least += String(value).length
      most += String(value).length
    } else if (typeof value !== "object" || value === null) most += 25
    return true
  })
  if (most <= limits.output_bytes) return
  const bytes = least > limits.output_bytes ? least : Buffer.byteLength(JSON.stringify(output))
  if (bytes > limits.output_bytes) {
    throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
      limit: limits.output_bytes,
      actual: bytes
    })
  }
}
