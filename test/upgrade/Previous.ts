import { execFile } from "node:child_process"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"

/** The commit that is the previous version. CONTRIBUTING.md says when it moves forward. */
const previous = "a8a819cbf7cb654bf6f496a442b0b33d853941b1"

const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

/**
 * Takes the previous version out of the history into a new folder within `parent`, and installs the dependencies that its own lock file
 * names, as its launcher does. Returns the folder.
 */
export const checkOutPrevious = async (parent: string): Promise<string> => {
  const folder = join(parent, "previous")
  const archive = join(parent, "previous.tar")
  try {
    await run("git", ["-C", root, "archive", "--format=tar", `--output=${archive}`, previous])
  } catch (cause) {
    throw new Error(
      `The previous version, commit ${previous}, is not in the history of this clone. Fetch the whole history, for example with \`git fetch --unshallow\`.`,
      { cause }
    )
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
