import { expect, it } from "vitest"
import { titlesIn } from "./TestTitles.ts"

const source = `
  it("plain", () => {})
  describe("a group", () => {
    it.effect("in a group", () => Effect.void)
    it.each([["not a title", () => {}]])("of a table: %s", (name) => {})
  })
  layer(world)("a suite", (it) => {
    it.effect.prop("of a property", [], () => {})
    for (const method of methods) it.live(\`\${method} with placeholders\`, () => {}, 1_000)
  })
  it.skip("skipped", () => {})
  it.effect.skip("skipped, too", () => Effect.void)
  it.fails("expected to fail", () => {})
  it.todo("to be written")
  it("without a body")
  describe.skip("a group that is skipped", () => {
    it("in a group that is skipped", () => {})
  })
  call("no test", () => {})
  // it("a comment", () => {})
`

it("Only the titles of tests that run are found", () => {
  expect([...titlesIn(source)]).toEqual([
    "plain",
    "in a group",
    "of a table: %s",
    "of a property",
    "${method} with placeholders"
  ])
})
