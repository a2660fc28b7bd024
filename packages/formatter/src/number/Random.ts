import { Fault } from "../engine/Fault.ts"
import { integer, number } from "../engine/Fields.ts"
import { decimal } from "../engine/Libraries.ts"
import { array, either, num, operation } from "../engine/Operation.ts"

export const random = operation({
  key: "number.random",
  label: "Random number",
  description: "A number between two, both included, or a list of them. A run that is repeated draws the same",
  fields: {
    lower: number("Lowest", { default: 0 }),
    upper: number("Highest", { default: 100 }),
    decimals: integer("Decimals", { default: 0, minimum: 0, maximum: 10 }),
    count: integer("How many", { default: 1, minimum: 1, maximum: 100 })
  },
  lines: "reject",
  random: true,
  output: { result: either(num, array(num)) },
  warnings: ["RANDOM_SEEDED"],
  cost: { call: 30 },
  sample: { inputs: { lower: 1, upper: 6 }, options: {}, output: { result: 3 } },
  run: ({ count, decimals, lower, upper }, call) => {
    // With doubles, 0.57 * 100 is less than 57.
    const Exact = decimal()
    const scale = new Exact(10).pow(decimals)
    const least = new Exact(lower).times(scale).ceil().toNumber()
    const most = new Exact(upper).times(scale).floor().toNumber()
    if (
      least > most ||
      !Number.isSafeInteger(most - least) ||
      !Number.isSafeInteger(least) ||
      !Number.isSafeInteger(most)
    ) {
      const message = lower > upper ? "the lowest is above the highest" : "there is no such number between the two"
      throw new Fault("FORMATTER_INPUT_INVALID", message, { field: "lower" })
    }
    call.warn("RANDOM_SEEDED", "the number is drawn from the run's seed")
    const numbers = Array.from({ length: count }, () =>
      new Exact(least + Math.floor(call.random() * (most - least + 1))).div(scale).toNumber()
    )
    return { result: count === 1 ? numbers[0]! : numbers }
  }
})
