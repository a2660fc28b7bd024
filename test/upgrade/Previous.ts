import { execFile } from "node:child_process"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"

/** The commit that is the previous version. CONTRIBUTING.md says when it moves forward. */
const previous = "a8a819cbf7cb654bf6f496a442b0b33d853941b1"

const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

const git = async (...args: ReadonlyArray<string>): Promise<string> =>
  (await run("git", ["-C", root, ...args])).stdout.trim()

/**
 * Why the previous version cannot be had here; null: it can. A shallow clone is completed if its origin allows it; a tree without its history has
 * no previous version. A whole history without the commit is no reason: then the commit is wrong, and taking it out fails.
 */
export const whyWithoutPrevious = async (): Promise<string | null> => {
  const isShallow = await git("rev-parse", "--is-shallow-repository").catch(() => null)
  if (isShallow === "false") return null
  if (isShallow === null) return "this tree has no history"
  const completed = await git("fetch", "--quiet", "--unshallow").catch(() => null)
  return completed === null
    ? "this clone is shallow, and its origin does not give the rest: git fetch --unshallow"
    : null
}

/**
 * Takes the previous version out of the history into a new folder within `parent`, and installs the dependencies that its own lock file
 * names, as its launcher does. Returns the folder.
 */
export const checkOutPrevious = async (parent: string): Promise<string> => {
  const folder = join(parent, "previous")
  const archive = join(parent, "previous.tar")
  try {
    await git("archive", "--format=tar", `--output=${archive}`, previous)
  } catch (cause) {
    throw new Error(`The previous version, commit ${previous}, is not in the history of this clone.`, { cause })
  }
  await mkdir(folder)
  await run("tar", ["-xf", archive, "-C", folder])
  const flags = [
    "--omit=dev",
    "--include=optional",
    "--ignore-scripts",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--loglevel=error"
  ]
  await run("npm", ["ci", ...flags], { cwd: folder })
  return folder
}
