import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { describe, expect, it } from "vitest"
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

describe("API reference, which -u writes", () => {
  it.each(tags.map((tag) => [fileOf(tag.name), tag] as const))("The page docs/api/%s is current", async (file, tag) => {
    await expect(await referencePage(tag)).toMatchFileSnapshot(join(docs, "api", file))
  })

  it("The API reference has no other pages and no other introductions", () => {
    expect(readdirSync(join(docs, "api")).toSorted()).toEqual(tags.map(({ name }) => fileOf(name)).toSorted())
    expect(Object.keys(introductions).toSorted()).toEqual(tags.map(({ name }) => name).toSorted())
  })
})

describe("List of proofs", () => {
  it("The list of proofs has every operation and no other", () => {
    const built = sections.flatMap(endpointsOf).filter(({ proof }) => !("missing" in proof))
    const there = operations.map(({ method, path }) => `${method} ${path}`)
    expect(built.map(({ what }) => what).toSorted()).toEqual(there.toSorted())
  })

  it("The list of proofs marks no operation as not built", () => {
    const absent = sections.flatMap(endpointsOf).filter(({ proof }) => "missing" in proof)
    expect(absent).toEqual([])
  })

  it("The list of proofs has every member of requests and answers, and no other", () => {
    const named = sections.flatMap(({ fields }) => Object.keys(fields).flatMap((names) => names.split(" ")))
    expect(named.toSorted()).toEqual([...components.keys()].toSorted())
    expect(allFacts.filter(({ proof }) => proof === null).map(({ what }) => what)).toEqual([])
    expect(sections.flatMap(idleFields)).toEqual([])
  })

  it("The list of proofs names only existing tests", () => {
    const proofs = new Map(
      allFacts.flatMap(({ proof }) =>
        proof !== null && "test" in proof ? [[`${proof.file}: ${proof.test}`, proof] as const] : []
      )
    )
    const unknown = [...proofs].filter(([, { file, test }]) => !titlesOf(file).has(test)).map(([name]) => name)
    expect(unknown).toEqual([])
  })

  it("The full list of proofs is written to an ignored file with one line for each fact", () => {
    const text = wholeList()
    mkdirSync(dirname(join(root, listFile)), { recursive: true })
    writeFileSync(join(root, listFile), `# What is proven\n\n${text}\n`)
    const facts = text
      .split("\n")
      .filter((line) => line.startsWith("| ") && !/^\| (?:---|.* \| Proven in \|)/.test(line))
    expect(facts).toHaveLength(allFacts.length)
  })

  it("The page docs/coverage.md, which -u writes, counts the list of proofs", async () => {
    await expect(await coveragePage()).toMatchFileSnapshot(join(docs, "coverage.md"))
  })
})

it("The file packages/client/openapi.json, which -u writes, is the contract's document", async () => {
  const file = join(root, "packages/client/openapi.json")
  await expect(await documentText()).toMatchFileSnapshot(file)
})
