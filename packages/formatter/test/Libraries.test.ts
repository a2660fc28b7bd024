import { Result } from "effect"
import { expect, it, vi } from "vitest"
import { context } from "./Run.ts"

// Other suites of the worker may have loaded the libraries: these modules have loaded none.
vi.resetModules()
const { phones } = await import("../src/engine/Libraries.ts")
const { regions } = await import("../src/engine/Regions.ts")
const { compile, inParts } = await import("../src/Formatter.ts")

const partsOf = (operation: string, inputs: object): number => {
  const work = inParts(Result.getOrThrow(compile({ operation })), { ...inputs }, context)
  let parts = 1
  for (;;) {
    const part = work.next()
    if (part.done === true) {
      expect(Result.isSuccess(part.value)).toBe(true)
      return parts
    }
    parts++
  }
}

it("Large libraries are loaded before the first call that needs them, each as a separate part", () => {
  // A step is judged without them.
  expect(Result.isSuccess(compile({ operation: "number.phone", options: { region: "CH" } }))).toBe(true)
  expect(phones.isLoaded()).toBe(false)
  const input = "8005551212"
  expect([partsOf("number.phone", { input }), partsOf("number.phone", { input })]).toEqual([3, 1])
  expect([
    partsOf("text.html_to_markdown", { input: "<b>a</b>" }),
    partsOf("text.html_to_markdown", { input })
  ]).toEqual([2, 1])
})

it("Countries that a step may name are those of the phone number library", () => {
  expect([...regions].sort()).toEqual(phones().getCountries().sort())
})
