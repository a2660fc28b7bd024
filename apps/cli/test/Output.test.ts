import { expect, it } from "vitest"
import { jsonLine } from "../src/Output.ts"

it("JSON output contains no terminal control characters and parses to the same value", () => {
  const value = {
    "na\u009bme": "\u001b[31m \u009b31m \u007f \u0085 \u202eevil\u2066 \u061c ünser 🎉",
    list: ["\u200f"]
  }
  for (const text of [jsonLine(value), jsonLine(value, 2)]) {
    // oxlint-disable-next-line no-control-regex
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/)
    expect(text).toContain("ünser 🎉")
    expect(JSON.parse(text)).toEqual(value)
  }
})
