import { assert, describe, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"

/**
 * Who may import whom. A package imports those of lower layers that it names here, and nothing else: a new arrow is a
 * decision, and this is where it is taken.
 */
const layers: Readonly<Record<string, ReadonlyArray<string>>> = {
  "packages/model": [],
  "packages/templates": ["model"],
  "packages/rules": ["templates", "model"],
  "packages/signatures": ["model"],
  "packages/connectors": ["signatures", "model"],
  "packages/egress": ["model"],
  "packages/sandbox": ["model"],
  "packages/postgres": [],
  "packages/storage": ["connectors", "signatures", "model"],
  "packages/entities": ["storage", "connectors", "sandbox", "egress", "rules", "signatures", "model"],
  "packages/doors": ["entities", "storage", "connectors", "egress", "rules", "signatures", "model"],
  "packages/api": ["entities", "storage", "connectors", "signatures", "model"],
  "apps/gateway": ["api", "doors", "entities", "storage", "postgres", "sandbox", "egress", "model"]
}

/** Packages without I/O, clock or randomness of their own (an id's random part aside): they can be tested by example alone. */
const pure = new Set([
  "packages/model",
  "packages/templates",
  "packages/rules",
  "packages/signatures",
  "packages/connectors"
])

/** What of the platform computes and does nothing else. */
const computing = new Set([
  "node:buffer",
  "node:crypto",
  "node:querystring",
  "node:string_decoder",
  "node:zlib",
  "effect",
  "effect/net"
])
const pureLibraries = new Set(["re2js"])

const root = join(import.meta.dirname, "../..")

interface Import {
  readonly file: string
  readonly from: string
}

/** Every module that a text imports or exports from, types and dynamic imports included. */
const importsOf = (file: string, text: string): ReadonlyArray<Import> =>
  [...text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"\s,]+)"/g)].map(([, from = ""]) => ({ file, from }))

const sourcesOf = (folder: string): ReadonlyArray<Import> =>
  globSync(`${folder}/src/**/*.ts`, { cwd: root }).flatMap((file) =>
    importsOf(file, readFileSync(join(root, file), "utf8"))
  )

const workspace = /^@tidegate\/([a-z]+)(?:\/|$)/

/** Imports that the layers do not allow. */
const violations = (folder: string, imports: ReadonlyArray<Import>): ReadonlyArray<Import> => {
  const own = folder.split("/")[1]!
  const allowed = new Set([own, ...(layers[folder] ?? [])])
  return imports.filter(({ file, from }) => {
    const [, name] = workspace.exec(from) ?? []
    if (name !== undefined) return !allowed.has(name)
    // A path that leaves the package's sources goes around its layer.
    return from.startsWith(".") && !join(dirname(file), from).startsWith(`${folder}/src/`)
  })
}

const impurities = (imports: ReadonlyArray<Import>): ReadonlyArray<Import> =>
  imports.filter(
    ({ from }) => !from.startsWith(".") && !workspace.test(from) && !computing.has(from) && !pureLibraries.has(from)
  )

describe("the layers", () => {
  it("name every package", () => {
    const folders = globSync("{packages,apps}/*/package.json", { cwd: root }).map((path) =>
      path.replace("/package.json", "")
    )
    assert.deepStrictEqual(folders.toSorted(), Object.keys(layers).toSorted())
  })

  it.each(Object.keys(layers))("%s imports only what lies below it", (folder) => {
    const imports = sourcesOf(folder)
    assert.isAbove(imports.length, 0)
    assert.deepStrictEqual(violations(folder, imports), [])
  })

  it.each([...pure])("%s computes and does nothing else", (folder) => {
    assert.deepStrictEqual(impurities(sourcesOf(folder)), [])
  })

  it("are seen to be broken", () => {
    const bad = importsOf(
      "packages/rules/src/Bad.ts",
      [
        'import { Journal } from "@tidegate/storage/Journal"',
        'import type { Hints } from "@tidegate/doors/Hints"',
        'export * from "@tidegate/api/ApiRoutes"',
        'const later = await import("@tidegate/egress/Egress")',
        'import { x } from "../../storage/src/Journal.ts"',
        'import { readFileSync } from "node:fs"',
        'import { SqlClient } from "effect/sql"',
        'import { ok } from "./Filter.ts"',
        'import { fine } from "@tidegate/model/Ids"'
      ].join("\n")
    )
    assert.deepStrictEqual(
      violations("packages/rules", bad).map(({ from }) => from),
      [
        "@tidegate/storage/Journal",
        "@tidegate/doors/Hints",
        "@tidegate/api/ApiRoutes",
        "@tidegate/egress/Egress",
        "../../storage/src/Journal.ts"
      ]
    )
    assert.deepStrictEqual(
      impurities(bad).map(({ from }) => from),
      ["node:fs", "effect/sql"]
    )
  })
})
