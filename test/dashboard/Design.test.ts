import { readdir, readFile } from "node:fs/promises"
import { resolve } from "node:path"
import { describe, expect, it as test } from "vitest"

/** The page about the design system, held against the sources of the dashboard. */

const root = resolve(import.meta.dirname, "../..")
const sources = resolve(root, "apps/dashboard/src")

const it = test.extend("page", { scope: "file" }, async () => {
  const text = await readFile(resolve(root, "docs/dashboard/design.md"), "utf8")
  /** The names in the first column of the tables. */
  const cells = [...text.matchAll(/^\| (`[^|]+)\|/gm)].map(([, cell]) => cell!).join(" ")
  return new Set([...cells.matchAll(/`([^`]+)`/g)].map(([, name]) => name!))
})

describe("Design system of the dashboard", () => {
  it("Its page names every part, and no part that does not exist", async ({ page }) => {
    const files = (await readdir(resolve(sources, "parts"))).filter((name) => name.endsWith(".tsx"))
    const texts = await Promise.all(files.map((name) => readFile(resolve(sources, "parts", name), "utf8")))
    const parts = texts.flatMap((text) => [...text.matchAll(/^export const ([A-Z]\w*)/gm)].map(([, name]) => name!))
    expect(parts.length).toBeGreaterThan(40)
    expect([...page].filter((name) => !name.startsWith("--")).toSorted()).toEqual(parts.toSorted())
  })

  it("Its page names every value of the style sheet, and no other file of styles has a color of its own", async ({
    page
  }) => {
    const base = await readFile(resolve(sources, "styles/base.css"), "utf8")
    const values = new Set([...base.matchAll(/^ {2}(--[a-z-]+):/gm)].map(([, name]) => name!))
    expect([...page].filter((name) => name.startsWith("--")).toSorted()).toEqual([...values].toSorted())
    const others = (await readdir(resolve(sources, "styles"))).filter((name) => name !== "base.css")
    expect(others.length).toBeGreaterThan(5)
    for (const name of others) {
      const text = await readFile(resolve(sources, "styles", name), "utf8")
      expect([name, text.match(/:[^;{]*#[0-9a-f]{3,8}\b[^;{]*;/gi)]).toEqual([name, null])
    }
  })
})
