import { describe, expect, it } from "vitest"
import { htmlOf, htmlShapes } from "./HtmlShapes.ts"
import { outcomeOf } from "./Run.ts"
import { lookedAt } from "./Work.ts"

/** What the operation looks at for HTML of so many KiB. */
const work = (shape: readonly [string, string, string], kib: number, failed?: string): number => {
  const input = htmlOf(shape, kib * 1024)
  return lookedAt(() => {
    expect(outcomeOf("text.html_to_markdown", { input }).failed).toBe(failed)
  })
}

describe("Work for HTML", () => {
  it.each(Object.entries(htmlShapes))("Work for HTML grows linearly with its length: %s", (_, shape) => {
    const [small, middle, large] = [work(shape, 32), work(shape, 64), work(shape, 128)]
    expect(middle / small).toBeLessThan(2.05)
    expect(large / middle).toBeLessThan(2.05)
  })

  it("Work for HTML above the output limit is less than its reading", () => {
    const [within, beyond] = [1, 98].map((depth) => ["<blockquote>".repeat(depth), "<p>x", ""] as const)
    const read = work(within!, 128)
    expect(work(beyond!, 128, "FORMATTER_OUTPUT_TOO_LARGE")).toBeLessThan(read)
  })
})
