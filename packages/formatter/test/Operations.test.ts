import { describe, expect, it } from "vitest"
import { operations } from "../src/Operations.ts"
import { dates } from "./cases/Dates.ts"
import { numbers } from "./cases/Numbers.ts"
import { texts } from "./cases/Texts.ts"
import { utilities } from "./cases/Utilities.ts"
import { outcomeOf } from "./Run.ts"

/** Every operation, by its cases. */
const cases = { ...texts, ...numbers, ...dates, ...utilities }

it("Test cases cover every formatter operation with at least twelve each", () => {
  expect(Object.keys(cases).toSorted()).toEqual([...operations.keys()].toSorted())
  const few = Object.entries(cases).filter(([, of]) => of.length < 12)
  expect(few.map(([key, of]) => `${key}: ${of.length}`)).toEqual([])
})

describe.each(Object.entries(cases))("Formatter operation %s", (key, of) => {
  it.each(of.map((one) => [JSON.stringify([one.inputs, one.options ?? {}]).slice(0, 120), one] as const))(
    "Formatter operation gives the expected result for %s",
    (_, { inputs, options = {}, output, warnings = [] }) => {
      const outcome = outcomeOf(key, inputs, options)
      expect(outcome).toEqual(typeof output === "string" ? { failed: output } : { output, warnings })
    }
  )
})
