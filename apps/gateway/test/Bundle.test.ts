import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it as plain } from "vitest"

interface Chunk {
  readonly code: string
  readonly isEntry: boolean
}

const { bundle } = (await import(new URL("../bundle.mjs", import.meta.url).href)) as {
  readonly bundle: (options: { readonly input: object; readonly output: object }) => Promise<ReadonlyArray<Chunk>>
}

const it = plain.extend("folder", ({}, { onCleanup }) => {
  const folder = mkdtempSync(join(tmpdir(), "tidegate-bundle-"))
  onCleanup(() => rmSync(folder, { recursive: true }))
  return folder
})

/** Writes a program, and bundles it. */
const bundled = async (folder: string, program: string): Promise<string> => {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "program.js"), program)
  const [chunk] = await bundle({ input: { program: join(folder, "program.js") }, output: {} })
  return chunk!.code
}

/** What the program exports, when it runs. */
const running = (code: string): Promise<Record<string, unknown>> =>
  import(`data:text/javascript,${encodeURIComponent(code)}`) as Promise<Record<string, unknown>>

describe("Bundle of a program", () => {
  it("A bundle has the texts of its program in ASCII, and means the same", async ({ folder }) => {
    const code = await bundled(
      folder,
      [
        'export const text = "é – 日本 🎉 \\u2026"',
        "export const template = `${text} …`",
        "export const found = [/[–—]/.test(text), /^🎉$/u.test('🎉'), /^[^é]/.test(text)]"
      ].join("\n")
    )
    expect(code).toMatch(/^[ -~\s]+$/)
    const { found, template, text } = await running(code)
    expect({ found, template, text }).toEqual({
      found: [true, true, false],
      template: "é – 日本 🎉 … …",
      text: "é – 日本 🎉 …"
    })
  })

  it("A bundle keeps the comments about licences, and no others", async ({ folder }) => {
    const code = await bundled(
      folder,
      ["/*! MIT, by its author */", "/** Documents it. */", "// Explains it.", "export const one = 1"].join("\n")
    )
    expect(code).toContain("MIT, by its author")
    expect(code).not.toMatch(/Documents|Explains/)
  })

  it("A text that would mean something else in ASCII is refused, and the message shows it", async ({ folder }) => {
    await expect(bundled(folder, "export const raw = String.raw`a – b`")).rejects.toThrow("String.raw`a –")
    await expect(bundled(folder, "export const escaped = /\\–/")).rejects.toThrow("\\–")
  })
})
