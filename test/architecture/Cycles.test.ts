import { describe, expect, it } from "vitest"
import { fileOf, folders, type Source, sourceOf, sourcesIn } from "./Tree.ts"

/**
 * The import cycles among files, each as the path that leads back to its first file. Imports of types count: two files that need each
 * other's types are hard to read and to move apart.
 */
const cyclesAmong = (sources: ReadonlyArray<Source>): ReadonlyArray<string> => {
  const imports = new Map(
    sources.map((source) => [source.file, source.imports.flatMap((one) => fileOf(one) ?? [])] as const)
  )
  const cycles: Array<string> = []
  const done = new Set<string>()
  const path: Array<string> = []
  const visit = (file: string): void => {
    const at = path.indexOf(file)
    if (at !== -1) cycles.push([...path.slice(at), file].join(" → "))
    if (at !== -1 || done.has(file)) return
    path.push(file)
    for (const next of imports.get(file) ?? []) visit(next)
    path.pop()
    done.add(file)
  }
  for (const { file } of sources) visit(file)
  return cycles
}

describe("Files", () => {
  it("of packages and apps import each other in no cycle", () => {
    const sources = folders.flatMap(sourcesIn)
    const files = new Set(sources.map(({ file }) => file))
    const unknown = sources.flatMap(({ imports }) =>
      imports.map(fileOf).filter((file) => file?.endsWith(".ts") === true && !files.has(file))
    )
    expect(unknown, "imports that lead to no source file").toEqual([])
    expect(cyclesAmong(sources)).toEqual([])
  })

  it("that import each other are found, also if they need only types", () => {
    const file = (name: string, text: string): Source => sourceOf(`packages/rules/src/${name}.ts`, text)
    const sources = [
      file("A", 'import { b } from "./B.ts"'),
      file("B", 'export type { C } from "@tidegate/rules/C"'),
      file("C", 'import type { A } from "./A.ts"\nimport { d } from "./D.ts"'),
      file("D", "")
    ]
    const cycle = ["A", "B", "C", "A"].map((name) => `packages/rules/src/${name}.ts`).join(" → ")
    expect(cyclesAmong(sources)).toEqual([cycle])
    expect(cyclesAmong(sources.slice(0, 2))).toEqual([])
  })
})
