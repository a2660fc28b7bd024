import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { isNotBuilt } from "../../packages/api/src/NotBuilt.ts"
import { documentText, operations } from "./Contract.ts"
import { allFacts, components, coveragePage, endpointsOf, idleFields, listFile, wholeList } from "./facts/Coverage.ts"
import { sections } from "./facts/Sections.ts"
import { introductions } from "./Introductions.ts"
import { fileOf, referencePage, tags } from "./ReferencePage.ts"
import { titlesIn } from "./TestTitles.ts"

/**
 * The committed files that are generated from the contract match the contract of today. A difference fails, and `npm test --
 * test/published -u` writes the files.
 */

const root = resolve(import.meta.dirname, "../..")
const docs = join(root, "docs")

const titlesOf = (file: string): ReadonlySet<string> => titlesIn(readFileSync(join(root, file), "utf8"))

describe("the reference, which -u writes,", () => {
  it.each(tags.map((tag) => [fileOf(tag.name), tag] as const))("has docs/api/%s as it is here", async (file, tag) => {
    await expect(await referencePage(tag)).toMatchFileSnapshot(join(docs, "api", file))
  })

  it("has no other pages, and no other introductions", () => {
    expect(readdirSync(join(docs, "api")).toSorted()).toEqual(tags.map(({ name }) => fileOf(name)).toSorted())
    expect(Object.keys(introductions).toSorted()).toEqual(tags.map(({ name }) => name).toSorted())
  })
})

describe("the list of what is proven", () => {
  it("has every operation, and no other", () => {
    const built = sections.flatMap(endpointsOf).filter(({ proof }) => !("missing" in proof))
    const there = operations.map(({ method, path }) => `${method} ${path}`)
    expect(built.map(({ what }) => what).toSorted()).toEqual(there.toSorted())
  })

  it("says of what is not built that it is not, and of nothing else", () => {
    const absent = sections.flatMap(endpointsOf).filter(({ proof }) => "missing" in proof)
    const wrong = absent.filter(({ what }) => {
      const [method = "", path = ""] = what.split(" ")
      return !isNotBuilt(method, path.replaceAll(/\{\w+\}/g, "id"))
    })
    expect(wrong).toEqual([])
  })

  it("has every member of what is sent and answered, and no other", () => {
    const named = sections.flatMap(({ fields }) => Object.keys(fields).flatMap((names) => names.split(" ")))
    expect(named.toSorted()).toEqual([...components.keys()].toSorted())
    expect(allFacts.filter(({ proof }) => proof === null).map(({ what }) => what)).toEqual([])
    expect(sections.flatMap(idleFields)).toEqual([])
  })

  it("names tests that there are", () => {
    const proofs = new Map(
      allFacts.flatMap(({ proof }) =>
        proof !== null && "test" in proof ? [[`${proof.file}: ${proof.test}`, proof] as const] : []
      )
    )
    const unknown = [...proofs].filter(([, { file, test }]) => !titlesOf(file).has(test)).map(([name]) => name)
    expect(unknown).toEqual([])
  })

  it("is written whole where git ignores it, a line for each fact", () => {
    const text = wholeList()
    mkdirSync(dirname(join(root, listFile)), { recursive: true })
    writeFileSync(join(root, listFile), `# What is proven\n\n${text}\n`)
    const facts = text
      .split("\n")
      .filter((line) => line.startsWith("| ") && !/^\| (?:---|.* \| Proven in \|)/.test(line))
    expect(facts).toHaveLength(allFacts.length)
  })

  it("is counted in docs/coverage.md, which -u writes", async () => {
    await expect(await coveragePage()).toMatchFileSnapshot(join(docs, "coverage.md"))
  })
})

it("packages/client/openapi.json, which -u writes, is the document of the contract", async () => {
  const file = join(root, "packages/client/openapi.json")
  await expect(await documentText()).toMatchFileSnapshot(file)
})
