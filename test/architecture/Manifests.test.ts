import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { folders, inWorkspace, read, root, sourcesIn } from "./Tree.ts"

interface Manifest {
  readonly name: string
  readonly private?: boolean
  readonly version: string
  readonly exports?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
}

const manifestIn = (folder: string): Manifest => JSON.parse(read(join(folder, "package.json"))) as Manifest

/** What is for others than this project says itself what it exports, and which versions it was made for. */
const published = folders.filter((folder) => manifestIn(folder).private !== true)
const own = folders.filter((folder) => !published.includes(folder))

const imports = own.flatMap((folder) =>
  sourcesIn(folder).flatMap((source) => source.imports.map(({ from }) => ({ folder, from })))
)

/** `@scope/name` of `@scope/name/module`; null for the platform's own and for paths. */
const libraryOf = (from: string): string | null =>
  inWorkspace(from) === null ? (/^(?!node:)(?:@[\w-]+\/)?[\w][\w.-]*/.exec(from)?.[0] ?? null) : null

const sorted = (entries: Iterable<readonly [string, string]>): Record<string, string> =>
  Object.fromEntries([...new Map(entries)].toSorted(([left], [right]) => (left < right ? -1 : 1)))

/** The modules that the sources of other packages import. Suites that look behind a package's surface go by path. */
const exportsOf = (folder: string): Record<string, string> =>
  sorted(
    imports.flatMap(({ folder: importer, from }) => {
      const inner = inWorkspace(from)
      if (inner === null || importer === folder || `packages/${inner.name}` !== folder) return []
      return existsSync(join(root, folder, "src", `${inner.module}.ts`))
        ? [[`./${inner.module}`, `./src/${inner.module}.ts`] as const]
        : []
    })
  )

const versions = manifestIn(".").dependencies ?? {}

/** The packages and libraries that its sources import, by the versions that the root has. */
const dependenciesOf = (folder: string): Record<string, string> =>
  sorted(
    imports.flatMap(({ folder: importer, from }) => {
      if (importer !== folder) return []
      const inner = inWorkspace(from)
      if (inner !== null) return [[`@tidegate/${inner.name}`, manifestIn(`packages/${inner.name}`).version] as const]
      const library = libraryOf(from)
      return library === null ? [] : [[library, versions[library] ?? "not among the root's dependencies"] as const]
    })
  )

/** A package's manifest as its sources and those of the others make it. */
const manifestOf = (folder: string): string => {
  const { dependencies: _, exports: __, ...own } = manifestIn(folder)
  const [surface, needs] = [exportsOf(folder), dependenciesOf(folder)]
  const made = {
    ...own,
    ...(Object.keys(surface).length === 0 ? {} : { exports: surface }),
    ...(Object.keys(needs).length === 0 ? {} : { dependencies: needs })
  }
  return `${JSON.stringify(made, null, 2)}\n`
}

/**
 * `exports` are the modules that other packages import, no more; `dependencies` are what the sources import, no less. A
 * difference fails with the lines to add and to remove, and `npm test -- test/architecture -u` writes them.
 */
describe("Package manifests, which -u writes", () => {
  it.each(own)("The manifest of %s lists what is imported from it and what it imports", async (folder) => {
    await expect(manifestOf(folder)).toMatchFileSnapshot(join(root, folder, "package.json"))
  })

  it.each(published)(
    "The published manifest of %s lists the libraries that it imports, and no package of the project",
    (folder) => {
      const used = sourcesIn(folder).flatMap(({ imports }) => imports.flatMap(({ from }) => libraryOf(from) ?? []))
      expect(Object.keys(manifestIn(folder).dependencies ?? {})).toEqual([...new Set(used)].toSorted())
      const inner = sourcesIn(folder).flatMap(({ imports }) => imports.filter(({ from }) => inWorkspace(from) !== null))
      expect(inner).toEqual([])
    }
  )

  it("The lock file matches the manifests (`npm install --package-lock-only` updates it)", () => {
    const { packages } = JSON.parse(read("package-lock.json")) as {
      readonly packages: Record<string, Partial<Manifest>>
    }
    for (const folder of folders) {
      expect(packages[folder]?.dependencies, folder).toEqual(manifestIn(folder).dependencies)
    }
  })

  it("The dependencies of the project are exactly the libraries that run", () => {
    const used = imports.flatMap(({ from }) => libraryOf(from) ?? [])
    expect(Object.keys(versions).toSorted()).toEqual([...new Set(used)].toSorted())
  })
})
