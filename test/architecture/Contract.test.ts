import { describe, expect, it } from "vitest"
import { fileOf, inWorkspace, type Import, type Source, sourceOf, sourcesIn } from "./Tree.ts"

/** Files that declare the API: its shared parts, and each resource's groups, operations and examples. */
const isContract = (file: string): boolean =>
  /^packages\/api\/src\/(?:contract\/\w+|[\w-]+\/\w+(?:Api|Examples))\.ts$/.test(file)

/** What they import: the schemas and the declarations of resources. */
const declared: ReadonlySet<string> = new Set(["model", "resources"])

/** What is reached through these computes and does nothing else (`Layers.test.ts`). It is no part of a running gateway. */
const computing: ReadonlySet<string> = new Set([
  ...declared,
  "actions",
  "channels",
  "connectors",
  "formatter",
  "interpolation",
  "json",
  "outbound-auth",
  "redaction",
  "rules",
  "runtime",
  "verification",
  "workflows"
])

const isDeclaration = (one: Import): boolean => {
  const inner = inWorkspace(one.from)
  if (inner !== null) return declared.has(inner.name)
  const file = fileOf(one)
  return file === null ? one.from === "effect" || one.from === "effect/http-api" : isContract(file)
}

/** Imports that a published contract cannot have. */
const violations = (sources: ReadonlyArray<Source>): ReadonlyArray<string> =>
  sources.flatMap(({ file, imports }) =>
    imports.filter((one) => !isDeclaration(one)).map(({ from }) => `${file} must not import ${from}`)
  )

/** The packages of the files that are reached from these sources, over any number of imports. */
const reached = (sources: ReadonlyArray<Source>): ReadonlySet<string> => {
  const packages = new Set<string>()
  const add = (source: Source): void => {
    for (const { from } of source.imports) {
      const name = inWorkspace(from)?.name
      if (name === undefined || packages.has(name)) continue
      packages.add(name)
      sourcesIn(`packages/${name}`).forEach(add)
    }
  }
  sources.forEach(add)
  return packages
}

describe("The API's contract", () => {
  const contract = sourcesIn("packages/api").filter(({ file }) => isContract(file))

  it("imports only schemas and declarations, so that it can be published without the gateway", () => {
    const groups = contract.filter(
      ({ code }) => code.includes("extends HttpApiGroup") || code.includes("extends groupOf")
    )
    expect(groups.length).toBeGreaterThan(10)
    expect(violations(contract)).toEqual([])
  })

  it("reaches only packages without I/O, over any number of imports", () => {
    expect([...reached(contract)].filter((name) => !computing.has(name))).toEqual([])
  })

  it("is the only place where operations are declared", () => {
    const elsewhere = sourcesIn("packages/api").filter(
      ({ code, file }) => !isContract(file) && /\bHttpApiEndpoint\.(?:get|post|put|patch|delete|make)\(/.test(code)
    )
    expect(elsewhere.map(({ file }) => file)).toEqual([])
  })

  it("is refused if it imports a part of the running gateway", () => {
    const file = "packages/api/src/events/EventsApi.ts"
    const bad = sourceOf(
      file,
      [
        'import { Schema } from "effect"',
        'import { Event } from "@tidegate/model/Event"',
        'import { groupOf } from "../contract/Group.ts"',
        'import type { Retry } from "@tidegate/entities/Event/Retry"',
        'import { reader } from "../handlers/Reader.ts"',
        'import { laterTurn } from "@tidegate/runtime/EventLoopBudget"',
        'import { createHmac } from "node:crypto"'
      ].join("\n")
    )
    expect(isContract(file)).toBe(true)
    expect(violations([bad])).toEqual(
      [
        "@tidegate/entities/Event/Retry",
        "../handlers/Reader.ts",
        "@tidegate/runtime/EventLoopBudget",
        "node:crypto"
      ].map((from) => `${file} must not import ${from}`)
    )
    expect(reached([bad])).toContain("storage")
  })
})
