import { compileStatusExpressions } from "../src/StatusExpression.ts"
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"

const covered = (expressions: ReadonlyArray<string | number>, statuses: ReadonlyArray<number>) =>
  statuses.filter(Result.getOrThrow(compileStatusExpressions(expressions)))

describe("status expressions", () => {
  const statuses = [301, 399, 400, 401, 404, 429, 499, 500, 501, 503, 599]

  it("every form", () => {
    assert.deepStrictEqual(covered([404], statuses), [404])
    assert.deepStrictEqual(covered(["404"], statuses), [404])
    assert.deepStrictEqual(covered(["500-599"], statuses), [500, 501, 503, 599])
    assert.deepStrictEqual(covered([">400"], statuses), [401, 404, 429, 499, 500, 501, 503, 599])
    assert.deepStrictEqual(covered([">=500"], statuses), [500, 501, 503, 599])
    assert.deepStrictEqual(covered(["<=399"], statuses), [301, 399])
    assert.deepStrictEqual(covered(["<400"], statuses), [301, 399])
  })
  it("a ! form takes away from the others", () => {
    assert.deepStrictEqual(covered(["429", "500-599", "!501"], statuses), [429, 500, 503, 599])
    assert.deepStrictEqual(covered([">=500", "!500-501"], statuses), [503, 599])
    assert.deepStrictEqual(covered([">=500", "!>500"], statuses), [500])
  })
  it("alone, it takes away from everything", () => {
    assert.deepStrictEqual(
      covered(["!401"], statuses),
      statuses.filter((status) => status !== 401)
    )
    assert.deepStrictEqual(covered(["!400-499", "!<400"], statuses), [500, 501, 503, 599])
    assert.deepStrictEqual(covered([], statuses), statuses)
  })
  it("refuses everything else, naming which", () => {
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
      assert.isTrue(Result.isFailure(result), String(wrong))
      if (Result.isFailure(result)) assert.strictEqual(result.failure.index, 1)
    }
  })
})
