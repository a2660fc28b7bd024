import { describe, expect, it } from "vitest"
import { exactJson } from "../../apps/dashboard/src/json.ts"
import { Random } from "../../packages/entities/test/Random.ts"

const digits = (random: Random, min: number, max: number): string =>
  Array.from({ length: random.between(min, max) }, () => random.between(0, 9)).join("")

/** A number in any spelling that JSON has. */
const number = (random: Random): string => {
  const whole = random.chance(0.4) ? "0" : `${random.between(1, 9)}${digits(random, 0, random.pick([3, 14, 25]))}`
  const fraction = random.chance(0.5) ? "" : `.${"0".repeat(random.pick([0, 0, 5, 6, 12]))}${digits(random, 1, 20)}`
  const exponent = random.chance(0.8)
    ? ""
    : `${random.pick(["e", "E"])}${random.pick(["", "+", "-"])}${digits(random, 1, 3)}`
  return random.pick(["", "-"]) + whole + fraction + exponent
}

const value = (random: Random, depth: number): string => {
  const some = () => Array.from({ length: random.between(0, 3) }, () => value(random, depth - 1))
  if (depth === 0 || random.chance(0.4)) return number(random)
  if (random.chance(0.3)) return random.pick(["null", "true", '"1.0"', '", 1.50"', '"[-0]"', '"é\\n"'])
  return random.chance(0.5)
    ? `[${some().join(",")}]`
    : `{${some()
        .map((one, n) => `"m${n}":${one}`)
        .join(",")}}`
}

const random = new Random(1)

describe("JSON of the dashboard", () => {
  it("Every number keeps its spelling, wherever it is in a text", () => {
    for (let n = 0; n < 20_000; n++) {
      const text = value(random, 3)
      expect(JSON.stringify(exactJson.parse(text))).toBe(text)
    }
  })

  it("Every number keeps its spelling between spaces", () => {
    for (let n = 0; n < 20_000; n++) {
      const one = number(random)
      const space = random.pick([" ", "\n", "\t", "\r\n"])
      expect(JSON.stringify(exactJson.parse(`${space}{"a":${space}[${space}${one}${space}]}`))).toBe(`{"a":[${one}]}`)
    }
  })
})
