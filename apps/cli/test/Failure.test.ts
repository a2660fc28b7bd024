import { expect, it } from "vitest"
import { failureOf } from "../src/Failure.ts"

it.each<[Error, string]>([
  [new TypeError("fetch failed"), "unavailable"],
  [new TypeError("terminated", { cause: { code: "UND_ERR_SOCKET" } }), "unavailable"],
  [new TypeError("x is not a function"), "failed"],
  [new TypeError("Cannot convert argument to a ByteString"), "failed"]
])("CLI error %o has the code %s", (error, code) => {
  expect(failureOf(error).code).toBe(code)
})
