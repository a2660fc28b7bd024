import { describe, expect, it } from "@effect/vitest"
import { leftOutOf, ShortenedJson } from "../src/ShortenedJson.ts"

const chunksOf = (json: string, size: number): ReadonlyArray<Buffer> => {
  const bytes = Buffer.from(json)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}

const shortened = (json: string, size: number, longestText = 20, most = 10_000) => {
  const kept = new ShortenedJson(longestText, most)
  const fits = chunksOf(json, size).map((chunk) => kept.add(chunk))
  return { fits: fits.at(-1)!, text: kept.text().toString() }
}

const sizes = [1, 2, 3, 7, 1_000]

describe("JSON without its long texts", () => {
  it.each(sizes)("Texts up to the limit are kept as they are, in chunks of %i bytes", (size) => {
    const value = { a: 'quote " and \\ and ж', b: ["", "\\", '"', "x".repeat(20)], c: { "long name of it": 1.5 } }
    const json = JSON.stringify(value)
    expect(shortened(json, size, 30)).toEqual({ fits: true, text: json })
  })

  it.each(sizes)(
    "A longer text says how many bytes it had, and what follows it is kept, in chunks of %i bytes",
    (size) => {
      const long = `${"x".repeat(50)}\\" \\\\ ${"\\u003d".repeat(10)}`
      const json = `{"a":"before","b":"${long}","c":["${long}\\\\","after"]}`
      const { fits, text } = shortened(json, size)
      const { a, b, c } = JSON.parse(text) as { readonly a: string; readonly b: string; readonly c: [string, string] }
      expect([fits, a, c[1]]).toEqual([true, "before", "after"])
      expect([leftOutOf(b), leftOutOf(c[0]), leftOutOf(a)]).toEqual([long.length, long.length + 2, null])
    }
  )

  it("A text without end costs no more memory than one up to the limit", () => {
    const kept = new ShortenedJson(1_000, 5_000)
    const chunk = Buffer.alloc(65_536, "x")
    expect(kept.add(Buffer.from('{"data":"'))).toBe(true)
    for (let i = 0; i < 100; i++) expect(kept.add(chunk)).toBe(true)
    expect(kept.text().toString()).toBe('{"data":"')
  })

  it("More than may be kept is refused, however short its texts are", () => {
    const { fits } = shortened(JSON.stringify(Array.from({ length: 5_000 }, () => "a")), 1_000)
    expect(fits).toBe(false)
  })
})
