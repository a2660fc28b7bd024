import { compileStatusExpressions } from "../src/StatusExpression.ts"
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"

const covered = (expressions: ReadonlyArray<string | number>, statuses: ReadonlyArray<number>) =>
  statuses.filter(Result.getOrThrow(compileStatusExpressions(expressions)))

describe("Status expressions", () => {
  const statuses = [301, 399, 400, 401, 404, 429, 499, 500, 501, 503, 599]

  it("Every form of a status expression covers its statuses", () => {
    expect(covered([404], statuses)).toStrictEqual([404])
    expect(covered(["404"], statuses)).toStrictEqual([404])
    expect(covered(["500-599"], statuses)).toStrictEqual([500, 501, 503, 599])
    expect(covered([">400"], statuses)).toStrictEqual([401, 404, 429, 499, 500, 501, 503, 599])
    expect(covered([">=500"], statuses)).toStrictEqual([500, 501, 503, 599])
    expect(covered(["<=399"], statuses)).toStrictEqual([301, 399])
    expect(covered(["<400"], statuses)).toStrictEqual([301, 399])
  })
  it("An expression with ! removes statuses from the others", () => {
    expect(covered(["429", "500-599", "!501"], statuses)).toStrictEqual([429, 500, 503, 599])
    expect(covered([">=500", "!500-501"], statuses)).toStrictEqual([503, 599])
    expect(covered([">=500", "!>500"], statuses)).toStrictEqual([500])
  })
  it("An expression with ! alone removes statuses from all", () => {
    expect(covered(["!401"], statuses)).toStrictEqual(statuses.filter((status) => status !== 401))
    expect(covered(["!400-499", "!<400"], statuses)).toStrictEqual([500, 501, 503, 599])
    expect(covered([], statuses)).toStrictEqual(statuses)
  })
  it("An invalid status expression is rejected with its position", () => {
    for (const wrong of [
      "",
      "5xx",
      "4",
      "4040",
      "500-",
      "599-500",
      "=404",
      "!!404",
      "! 404",
      "500 - 599",
      ">",
      -404,
      4.5,
      40
    ]) {
      const result = compileStatusExpressions(["500", wrong])
      expect(Result.isFailure(result), String(wrong)).toBe(true)
      if (Result.isFailure(result)) expect(result.failure.index).toBe(1)
    }
  })
})
