import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { phones } from "../src/engine/Libraries.ts"
import { regions } from "../src/engine/Regions.ts"

it("Large libraries are loaded before the first call that needs them, each as a separate part", async () => {
  // Other suites of the worker may have loaded the libraries: a process of its own has loaded none.
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, "firstCalls.ts")])
  const { isCompiled, isLoaded, markdown, phone } = JSON.parse(stdout)
  // A step is judged without them.
  expect(isCompiled).toBe(true)
  expect(isLoaded).toBe(false)
  expect(phone).toEqual([
    { parts: 3, isSuccess: true },
    { parts: 1, isSuccess: true }
  ])
  expect(markdown).toEqual([
    { parts: 2, isSuccess: true },
    { parts: 1, isSuccess: true }
  ])
})

it("Countries that a step may name are those of the phone number library", () => {
  expect([...regions].sort()).toEqual(phones().getCountries().sort())
})
