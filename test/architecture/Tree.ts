import { globSync, readFileSync } from "node:fs"
import { dirname, join, posix } from "node:path"

/** The project's folder. */
export const root = join(import.meta.dirname, "../..")

export const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** The folders of what runs: `packages/model`, `apps/gateway`. Suites and benchmarks may look behind every surface. */
export const folders: ReadonlyArray<string> = globSync("{apps,packages}/*/package.json", { cwd: root })
  .map((path) => posix.dirname(path))
  .toSorted()

/** One `import` or `export … from`. */
export interface Import {
  readonly file: string
  /** The module, as it is written. */
  readonly from: string
  /** What is taken from it, by the names it has there; `*` is all of it. */
  readonly names: ReadonlyArray<string>
  /** Of types alone: nothing of the module runs. */
  readonly isType: boolean
}

export interface Source {
  readonly file: string
  /** Without its comments. */
  readonly code: string
  readonly imports: ReadonlyArray<Import>
}

const statement = /^(?:import|export)\s+(type\s+)?([\w$*,\s]*)(?:\{([^}]*)\})?\s*(?:from\s*)?"([^"]+)"/gm
const dynamic = /\bimport\(\s*"([^"]+)"/g

/** A source file, its imports found. Those whose module is computed are not seen. */
export const sourceOf = (file: string, text: string): Source => {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/.*$/gm, "$1")
  const imports: Array<Import> = []
  for (const [, type, whole = "", listed, from = ""] of code.matchAll(statement)) {
    const items = (listed ?? "").split(",").flatMap((item) => (item.trim() === "" ? [] : [item.trim()]))
    imports.push({
      file,
      from,
      names: [...(whole.trim() === "" ? [] : ["*"]), ...items.map((item) => /^(?:type\s+)?([\w$]+)/.exec(item)![1]!)],
      isType: type !== undefined || (items.length > 0 && items.every((item) => item.startsWith("type ")))
    })
  }
  for (const [, from = ""] of code.matchAll(dynamic)) imports.push({ file, from, names: ["*"], isType: false })
  return { file, code, imports }
}

export const sourcesIn = (folder: string): ReadonlyArray<Source> =>
  globSync([`${folder}/src/**/*.{ts,tsx}`, `${folder}/{build,bundle}.mjs`], { cwd: root })
    .toSorted()
    .map((file) => sourceOf(file, read(file)))

/** The package and the module of an import of this project's; null for any other. */
export const inWorkspace = (from: string): { readonly name: string; readonly module: string } | null => {
  const [, name, module = ""] = /^@tidegate\/([a-z-]+)(?:\/(.*))?$/.exec(from) ?? []
  return name === undefined ? null : { name, module }
}

/** Where a relative import leads to; null for any other. */
export const target = ({ file, from }: Import): string | null =>
  from.startsWith(".") ? posix.join(dirname(file), from) : null

const surfaces = new Map<string, Readonly<Record<string, unknown>>>()

const surfaceOf = (name: string): Readonly<Record<string, unknown>> => {
  const known = surfaces.get(name)
  if (known !== undefined) return known
  const { exports = {} } = JSON.parse(read(`packages/${name}/package.json`)) as { exports?: Record<string, unknown> }
  surfaces.set(name, exports)
  return exports
}

/** The source file that an import of this project's leads to; null for any other. */
export const fileOf = (one: Import): string | null => {
  const inner = inWorkspace(one.from)
  if (inner === null) return target(one)
  const exported = surfaceOf(inner.name)[`./${inner.module}`]
  return typeof exported === "string"
    ? posix.join("packages", inner.name, exported)
    : `packages/${inner.name}/src/${inner.module}.ts`
}
