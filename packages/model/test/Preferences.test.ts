import { expect, it } from "vitest"
import { preferenceOf } from "../src/Preferences.ts"
import { processorTime } from "../../runtime/test/processorTime.ts"

const handling = (header: string | undefined) => preferenceOf(header, "handling")

it("The preferred handling of a caller is found among other preferences", () => {
  expect(handling("handling=lenient")).toBe("lenient")
  expect(handling('respond-async, wait=10, Handling = "lenient"; foo=bar')).toBe("lenient")
  expect(handling('return=minimal; note="a, handling=strict", handling=lenient')).toBe("lenient")
  expect(handling(" , ,handling=lenient,")).toBe("lenient")
})

it("The first of two preferences with the same name counts", () => {
  expect(handling("handling=strict, handling=lenient")).toBe("strict")
})

it("A header without a valid preference, or of extreme length, gives no preference", () => {
  expect(handling(undefined)).toBeUndefined()
  expect(handling("")).toBeUndefined()
  expect(handling("wait=10")).toBeUndefined()
  expect(handling("handlings=lenient")).toBeUndefined()
  expect(handling("(=, handling=lenient")).toBeUndefined()
  expect(handling(`${" ,".repeat(4_000)}handling=lenient`)).toBeUndefined()
})

it("A malformed preference header is read in bounded time", () => {
  const spent = processorTime()
  handling(`a${";a".repeat(2_000)}"`)
  handling(`a${"; ".repeat(2_000)}"`)
  handling(`${"\t".repeat(4_000)}"`)
  handling(`a="${"\\".repeat(4_000)}`)
  expect(spent()).toBeLessThan(250)
})
