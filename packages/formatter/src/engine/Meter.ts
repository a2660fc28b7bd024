import { isExactNumber } from "@tidegate/json/ExactNumber"
import { Fault, tooMuch } from "./Fault.ts"
import { elementMicros, limits, totalMicros } from "./Limits.ts"
import type { Operation, Output } from "./Operation.ts"

/**
 * Time is counted by what the operation is said to cost, and not by a clock: the same inputs take the same, and end the same, on a fast machine and on
 * a slow one. `benchmarks` and the hostile inputs of the tests are what the costs were measured by.
 */
export class Meter {
  #left = totalMicros
  #ofElement = elementMicros
  /** Another element begins: what the one before has left, it does not inherit. */
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

/** The most characters that the texts of one element may have together: the operation's own limit, or what its cost leaves. */
export const charactersOf = ({ cost, limits: own }: Operation): number =>
  own["characters"] ?? Math.floor(((elementMicros - cost.call) * 1000) / cost.character)

/** The characters of the texts that a value holds, however deep. */
export const charactersIn = (given: object): number => {
  let characters = 0
  const open: Array<unknown> = [given]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value === "string") characters += value.length
    else if (isExactNumber(value)) characters += String(value).length
    else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) open.push(one)
  }
  return characters
}

/** What one element of so many characters costs, in microseconds. */
export const withinElement = (operation: Operation, length: number): number => {
  const most = charactersOf(operation)
  if (length > most) throw tooMuch("the input has too many characters for this operation", most, length)
  return operation.cost.call + (operation.cost.character * length) / 1000
}

/** Refuses an output that is larger than a step may hand on. */
export const withinOutput = (output: Output): void => {
  let least = 0
  let most = 0
  const open: Array<unknown> = [output]
  for (let value = open.pop(); value !== undefined; value = open.pop()) {
    if (typeof value === "string") {
      least += value.length + 2
      most += value.length * 6 + 2
    } else if (isExactNumber(value)) {
      least += String(value).length
      most += String(value).length
    } else if (typeof value === "object" && value !== null) {
      for (const name in value) {
        open.push((value as Readonly<Record<string, unknown>>)[name])
        least += Array.isArray(value) ? 1 : name.length + 4
        most += Array.isArray(value) ? 1 : name.length * 6 + 4
      }
    } else {
      most += 25
    }
  }
  if (most <= limits.output_bytes) return
  const bytes = least > limits.output_bytes ? least : Buffer.byteLength(JSON.stringify(output))
  if (bytes > limits.output_bytes) {
    throw new Fault("FORMATTER_OUTPUT_TOO_LARGE", "the output is too large", {
      limit: limits.output_bytes,
      actual: bytes
    })
  }
}
