import { describe, expect, it } from "vitest"
import { Schema } from "effect"
import * as Characters from "../src/Characters.ts"

const pair = "\u{1f4e6}"

describe("Length of a text", () => {
  it("The length of a text counts Unicode characters, and half a surrogate pair counts as one", () => {
    for (const text of [
      "",
      "a",
      "é",
      pair,
      `a${pair}b`,
      `${pair}${pair}`,
      "\ud83d",
      "\udce6\ud83d",
      "\ud83d\ud83d\udce6"
    ]) {
      expect(Characters.count(text), JSON.stringify(text)).toBe(Array.from(text).length)
    }
  })

  it("A length limit is exact to the character", () => {
    for (const one of ["x", pair, "\ud83d"]) {
      expect([3, 4, 5].map((times) => Characters.isUpTo(one.repeat(times), 4))).toEqual([true, true, false])
    }
    expect(Characters.isUpTo(`${pair.repeat(3)}xx`, 4)).toBe(false)
    expect(Characters.isUpTo(`${pair.repeat(3)}x`, 4)).toBe(true)
  })

  it("A length check counts characters as JSON Schema does", () => {
    const is = Schema.is(Schema.String.check(Characters.between(2, 3)))
    expect([1, 2, 3, 4].map((times) => is(pair.repeat(times)))).toEqual([false, true, true, false])
    expect([1, 2, 3, 4].map((times) => is("x".repeat(times)))).toEqual([false, true, true, false])
    const { schema } = Schema.toJsonSchemaDocument(Schema.String.check(Characters.between(2, 3)))
    expect(schema).toMatchObject({ type: "string", minLength: 2, maxLength: 3 })
  })
})
