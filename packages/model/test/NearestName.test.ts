import { expect, it } from "vitest"
import { didYouMean, nearestName } from "../src/NearestName.ts"
import { processorTime } from "../../runtime/test/processorTime.ts"

const members = ["status", "source_id", "connection_id", "rate_limit", "rate_limit_period", "q"]

it("A mistyped name resolves to the known name with the fewest different characters", () => {
  expect(nearestName("stauts", members)).toBe("status")
  expect(nearestName("conection_id", members)).toBe("connection_id")
  expect(nearestName("rate_limt", members)).toBe("rate_limit")
  expect(nearestName("GITHUBB", ["GITLAB", "GITHUB"])).toBe("GITHUB")
  expect(nearestName("bdoy", ["headers", "body", "query", "path"])).toBe("body")
})

it("A name in another case or with other separators is the same name", () => {
  expect(nearestName("sourceId", members)).toBe("source_id")
  expect(nearestName("RATE-LIMIT-PERIOD", members)).toBe("rate_limit_period")
})

it("A name that resembles no known name has no nearest name", () => {
  expect(nearestName("flavour", members)).toBeNull()
  expect(nearestName("x", members)).toBe("q")
  expect(nearestName("", members)).toBeNull()
  expect(didYouMean("flavour", members)).toBe("")
  expect(didYouMean("stauts", members)).toBe("; did you mean status?")
})

it("Extremely long names are not compared", () => {
  const spent = processorTime()
  expect(nearestName("s".repeat(1_000_000), members)).toBeNull()
  expect(nearestName("status", ["s".repeat(1_000_000)])).toBeNull()
  expect(spent()).toBeLessThan(50)
})
