import { describe, expect, it } from "vitest"
import { type Content, hasText, maxRead, withText } from "../../apps/dashboard/src/parts/TextIn.ts"

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

  /** `total` requests, one a minute, the newest first, of which each tenth has the text. */
  const pagesOf =
    (total: number) =>
    ({ cursor }: { readonly cursor?: string }) => {
      const first = Number(cursor ?? 0)
      const last = Math.min(total, first + 100)
      const models = Array.from({ length: last - first }, (_, n) => ({
        data: { ...content, path: (first + n) % 10 === 0 ? "/found" : "/other" },
        ingested_at: new Date(Date.UTC(2026, 0, 2) - (first + n) * 60_000).toISOString()
      }))
      return Promise.resolve({ models, next_cursor: last < total ? String(last) : null, has_more: last < total })
    }

  it("A search says how many requests it has read, since when, and whether there are older ones", async () => {
    const found = async (total: number) => {
      const { models, searched } = await withText("found", pagesOf(total))
      return { found: models.length, ...searched }
    }
    expect(await found(0)).toEqual({ found: 0, count: 0, since: null, cursor: null })
    expect(await found(250)).toEqual({ found: 25, count: 250, since: "2026-01-01T19:51:00.000Z", cursor: null })
    expect(await found(maxRead)).toMatchObject({ found: 100, count: maxRead, cursor: null })
    expect(await found(maxRead + 1)).toEqual({
      found: 100,
      count: maxRead,
      since: "2026-01-01T07:21:00.000Z",
      cursor: String(maxRead)
    })
  })

  it("A search goes on from where it ended, in a part as long as it is told, and keeps no contents of what it found", async () => {
    const { models, searched } = await withText("found", pagesOf(1_150), { from: "1000", most: 1 })
    expect(models).toHaveLength(10)
    expect(models.every(({ data }) => data === null)).toBe(true)
    expect(searched).toEqual({ count: 100, since: "2026-01-01T05:41:00.000Z", cursor: "1100" })
    const last = await withText("found", pagesOf(1_150), { from: "1100", most: 1 })
    expect(last.searched).toMatchObject({ count: 50, cursor: null })
  })
})
