import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"

/**
 * What is in the folder: `digest` of the sources, the names of its `files`, and the folders of the `libraries` in them. Null: no bundle was
 * published there.
 */
export const publishedIn = (folder) => {
  try {
    return JSON.parse(readFileSync(join(folder, "bundle.json"), "utf8"))
  } catch {
    return null
  }
}

const namesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((one) => (one.isFile() ? [one.name] : []))

/**
 * Replaces the bundle in a folder, also while gateways read it: the `pages` that name the new `files` get their names after all of them have theirs.
 * The name of a file contains the hash of its content, so files of several bundles have room in one folder. Those of the bundle before stay, because
 * pages that are open and programs that run load parts of it later. Older ones are removed.
 *
 * `files`, `pages`: content by name.
 */
export const publish = (folder, { digest, files, libraries = [], pages }) => {
  const before = publishedIn(folder)
  // Another process has built the same meanwhile.
  if (before?.digest === digest) return
  const assets = join(folder, "assets")
  const aside = join(folder, `aside.${process.pid}`)
  mkdirSync(assets, { recursive: true })
  mkdirSync(aside, { recursive: true })
  const put = (path, content) => {
    writeFileSync(join(aside, basename(path)), content)
    renameSync(join(aside, basename(path)), path)
  }
  try {
    const present = namesIn(assets)
    for (const [name, content] of Object.entries(files)) if (!present.includes(name)) put(join(assets, name), content)
    for (const [name, content] of Object.entries(pages)) put(join(folder, name), content)
    put(join(folder, "bundle.json"), JSON.stringify({ digest, files: Object.keys(files), libraries }))
    const kept = new Set([...Object.keys(files), ...(before?.files ?? present)])
    for (const name of namesIn(assets)) if (!kept.has(name)) rmSync(join(assets, name), { force: true })
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}
