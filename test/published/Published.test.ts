import { readdirSync } from "node:fs"
import { join, resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { introductions } from "./Introductions.ts"
import { fileOf, referencePage, tags } from "./ReferencePage.ts"

/**
 * What is made of the contract and kept in the tree is what the contract makes today. A difference fails, and
 * `npm test -- test/published -u` writes it.
 */

const docs = resolve(import.meta.dirname, "../../docs")

describe("the reference, which -u writes,", () => {
  it.each(tags.map((tag) => [fileOf(tag.name), tag] as const))("has docs/api/%s as it is here", async (file, tag) => {
    await expect(await referencePage(tag)).toMatchFileSnapshot(join(docs, "api", file))
  })

  it("has no other pages, and no other introductions", () => {
    expect(readdirSync(join(docs, "api")).toSorted()).toEqual(tags.map(({ name }) => fileOf(name)).toSorted())
    expect(Object.keys(introductions).toSorted()).toEqual(tags.map(({ name }) => name).toSorted())
  })
})
