/** Libraries that the package contains as they are: those with native code, and those that the formatter loads when it first needs them. */
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"

const modules = join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "node_modules")

const native = ["isolated-vm"]
const loaded = [
  "any-ascii",
  "decimal.js",
  "htmlparser2",
  "libphonenumber-js",
  "linkify-it",
  "markdown-it",
  "pluralize",
  "re2js",
  "tlds"
]

const manifestOf = (name) => JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"))

/** With what they need themselves. */
const withDependencies = (names) => {
  const found = new Set()
  const visit = (name) => {
    if (found.has(name)) return
    found.add(name)
    if (existsSync(join(modules, name, "node_modules"))) throw new Error(`${name} has dependencies of its own versions`)
    for (const dependency of Object.keys(manifestOf(name).dependencies ?? {})) visit(dependency)
  }
  names.forEach(visit)
  return [...found].toSorted((a, b) => (a < b ? -1 : 1))
}

export const bundledLibraries = withDependencies([...native, ...loaded]).map((name) => ({
  name,
  version: manifestOf(name).version,
  license: manifestOf(name).license
}))

/** What is not needed to run: sources of native code (npm would compile a package with a `binding.gyp`), builds for browsers, types. */
const left =
  /(^|\/)(node_modules|binding\.gyp|src\/.*\.(cc|h)|vendor|native-example|prebuilds\/win32.*|.*\.tgz|.*\.map|.*\.d\.[cm]?ts|bundle|test|tests|docs?)(\/|$)/

/** Copies a library. Its scripts are left out: npm would run them at the installation, and the prebuilt binaries need none. */
export const copyLibrary = (name, target) => {
  const source = join(modules, name)
  cpSync(source, target, {
    recursive: true,
    dereference: true,
    filter: (path) => path === source || !left.test(relative(source, path))
  })
  const { devDependencies: _, scripts: __, ...manifest } = manifestOf(name)
  writeFileSync(join(target, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`)
}
