import { readFileSync } from "node:fs"
import { getExampleNumber } from "libphonenumber-js/max"
import type { CountryCode } from "libphonenumber-js/max"
import { describe, expect, it } from "vitest"
import { rowsOf } from "../src/utility/Csv.ts"
import { outcomeOf } from "./Run.ts"

/** Beside what others make of the same: `oracle/make.py` made the fixtures with Python's csv and dateutil. */

const fixture = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(`oracle/${name}.json`, import.meta.url), "utf8"))

/** Whether a text ends within a quote, which is an error of ours. */
const rowsOrNull = (text: string) => {
  try {
    return rowsOf(text, ",")
  } catch {
    return null
  }
}

it("Formatter reads CSV like Python", () => {
  const texts = fixture("csv") as ReadonlyArray<{ text: string; rows: ReadonlyArray<ReadonlyArray<string>> }>
  let compared = 0
  for (const { rows, text } of texts) {
    const own = rowsOrNull(text)
    if (own === null) continue
    compared++
    expect(own, JSON.stringify(text)).toEqual(rows)
  }
  expect(compared).toBeGreaterThan(100)
})

it("Formatter adds to dates like Python's dateutil", () => {
  const dates = fixture("dates") as ReadonlyArray<{
    start: string
    expression: string
    end: string
    weekday: number
    week: number
    ordinal: number
  }>
  expect(dates.length).toBeGreaterThan(200)
  for (const { end, expression, ordinal, start, week, weekday } of dates) {
    const { output } = outcomeOf(
      "date.add_subtract",
      { input: start, expression },
      { to_format: "YYYY-MM-DDTHH:mm:ss d DDD" }
    )
    expect(output, `${start} ${expression}`).toEqual({ result: `${end} ${weekday} ${ordinal}` })
    expect(outcomeOf("date.parts", { input: end }).output).toMatchObject({ weekday, iso_week: week })
  }
})

describe("Example phone number of each country", () => {
  const examples = JSON.parse(
    readFileSync(new URL("../../../node_modules/libphonenumber-js/examples.mobile.json", import.meta.url), "utf8")
  ) as Record<CountryCode, string>

  it("Example phone number of each country is valid, is formatted as E.164 and is found in a text", () => {
    const countries = Object.keys(examples) as ReadonlyArray<CountryCode>
    expect(countries.length).toBeGreaterThan(200)
    for (const region of countries) {
      const example = getExampleNumber(region, examples)!
      const { output } = outcomeOf("number.phone", { input: example.formatNational() }, { region })
      expect(output, region).toMatchObject({ result: example.number, valid: true })
      const inText = outcomeOf(
        "text.extract_phone",
        { input: `call ${example.formatInternational()} now` },
        { output: "e164" }
      )
      expect(inText.output, region).toEqual({ result: example.number })
    }
  })
})
