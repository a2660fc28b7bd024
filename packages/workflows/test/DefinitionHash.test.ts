import { describe, expect, it } from "vitest"
import { definitionHash } from "../src/DefinitionHash.ts"
import { compiled, echo, edge } from "./Graphs.ts"

const hashOf = (step: Readonly<Record<string, unknown>>) => {
  const { edges, steps } = compiled([step], [edge("", "step")])
  return definitionHash(steps, edges)
}

describe("Definition hash", () => {
  it("The definition hash ignores positions, notes and the order of members", () => {
    const plain = hashOf(echo("step", { a: 1, b: 2 }))
    expect(plain).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(hashOf({ ...echo("step", { b: 2, a: 1 }, { note: "why" }), position: { x: 7, y: 8 } })).toBe(plain)
  })

  it("The definition hash changes when something else would run", () => {
    const plain = hashOf(echo("step", { a: 1 }))
    expect(hashOf(echo("step", { a: 2 }))).not.toBe(plain)
    expect(hashOf(echo("step", { a: 1 }, { on_error: "continue" }))).not.toBe(plain)
    expect(hashOf({ ...echo("step", { a: 1 }), name: "other" })).not.toBe(plain)
  })
})
