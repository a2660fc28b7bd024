import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it as plain } from "vitest"

interface Bundle {
  readonly digest: string
  readonly files: Readonly<Record<string, string>>
  readonly libraries: ReadonlyArray<string>
  readonly pages: Readonly<Record<string, string>>
}

const { publish, publishedIn } = (await import(new URL("../../infra/publish.mjs", import.meta.url).href)) as {
  readonly publish: (folder: string, bundle: Bundle) => void
  readonly publishedIn: (folder: string) => { readonly digest: string } | null
}

const it = plain.extend("folder", ({}, { onCleanup }) => {
  const folder = mkdtempSync(join(tmpdir(), "tidegate-dashboard-"))
  onCleanup(() => rmSync(folder, { recursive: true }))
  return folder
})

/** The bundle of a digest: one file that all have, and one of its own. */
const bundle = (digest: string): Bundle => ({
  digest,
  files: { "shared.js": "shared", [`main-${digest}.js`]: digest },
  libraries: ["node_modules/react"],
  pages: { "index.html": `<script src="assets/main-${digest}.js">` }
})

const assetsIn = (folder: string) => readdirSync(join(folder, "assets")).toSorted()
const pageIn = (folder: string) => readFileSync(join(folder, "index.html"), "utf8")

describe("The built dashboard", () => {
  it("Files of the build before stay for pages that are open, and older ones are removed", ({ folder }) => {
    expect(publishedIn(folder)).toBeNull()
    publish(folder, bundle("a"))
    expect(assetsIn(folder)).toEqual(["main-a.js", "shared.js"])
    publish(folder, bundle("b"))
    expect(assetsIn(folder)).toEqual(["main-a.js", "main-b.js", "shared.js"])
    expect(pageIn(folder)).toBe(bundle("b").pages["index.html"])
    publish(folder, bundle("c"))
    expect(assetsIn(folder)).toEqual(["main-b.js", "main-c.js", "shared.js"])
    expect(publishedIn(folder)).toEqual({
      digest: "c",
      files: ["shared.js", "main-c.js"],
      libraries: ["node_modules/react"]
    })
    expect(readdirSync(folder).toSorted()).toEqual(["assets", "bundle.json", "index.html"])
  })

  it("A second build of the same sources changes nothing, so the files of the build before stay", ({ folder }) => {
    for (const digest of ["a", "b", "b"]) publish(folder, bundle(digest))
    expect(assetsIn(folder)).toEqual(["main-a.js", "main-b.js", "shared.js"])
  })

  it("A build that cannot write all of its files leaves the page of the build before", ({ folder }) => {
    publish(folder, bundle("a"))
    const broken = { ...bundle("b"), files: { "main-b.js": "b", "none/such.js": "" } }
    expect(() => publish(folder, broken)).toThrow(/none/)
    expect([pageIn(folder), publishedIn(folder)?.digest]).toEqual([bundle("a").pages["index.html"], "a"])
    expect(assetsIn(folder)).toContain("main-a.js")
  })

  it("What another version left in the folder is replaced like a build", ({ folder }) => {
    publish(folder, bundle("a"))
    writeFileSync(join(folder, "bundle.json"), "no JSON")
    publish(folder, bundle("b"))
    expect(assetsIn(folder)).toEqual(["main-a.js", "main-b.js", "shared.js"])
    expect(publishedIn(folder)?.digest).toBe("b")
  })
})
