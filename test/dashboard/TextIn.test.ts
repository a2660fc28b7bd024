import { describe, expect, it } from "vitest"
import { type Content, hasText } from "../../apps/dashboard/src/parts/TextIn.ts"

const content: Content = {
  headers: { "x-shop": "Käse & Co", accept: ["text/html", "a/b"] },
  path: "/orders/new",
  query: "tag=%7Bred%7D",
  body: { order: "7", note: 'she said "no"\nand left', lines: [{ sku: 1_200 }, { sku: 1_300 }] }
}

describe("Text search of the dashboard", () => {
  it.each([
    "orders/new",
    "tag=%7b",
    "x-shop: käse",
    "a/b",
    "note",
    'said "no"\nand',
    '\\"no\\"\\nand',
    '"order":"7"',
    '"order": "7"',
    '{\n  "sku": 1200\n}',
    "1300"
  ])("A request is found by %j, which is in it", (text) => {
    expect(hasText(content, text)).toBe(true)
  })

  it.each(["headers", "parsed_query", "path", "body", "x-shop: a/b", '"order":"8"'])(
    "A request is not found by %j, which only the answer of the API has, or nothing",
    (text) => {
      expect(hasText(content, text)).toBe(false)
    }
  )

  it("Spaces without end, and values that are nested deeply, are searched", () => {
    // With a search that reads a run of spaces from each of them, this would take hours.
    const spaces = " ".repeat(2_000_000)
    expect(hasText({ ...content, body: { note: spaces } }, "1300")).toBe(false)
    expect(hasText({ ...content, body: { note: spaces, order: "1300" } }, `"${spaces}", "order"`)).toBe(true)
    let deep: unknown = "1300"
    for (let depth = 0; depth < 100_000; depth++) deep = [deep]
    expect(hasText({ ...content, body: deep }, "1300")).toBe(true)
  })

  it("A body that is a text is found by its text as it was sent, and not by JSON of it", () => {
    const text: Content = { ...content, body: '{"order":"7"} {\nsecond' }
    expect(hasText(text, '{"order":"7"} {')).toBe(true)
    expect(hasText(text, "{\nsec")).toBe(true)
    expect(hasText(text, "{\\nsec")).toBe(false)
    expect(hasText({ ...content, body: null }, "null")).toBe(false)
  })
})
