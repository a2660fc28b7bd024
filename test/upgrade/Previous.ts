import { execFile } from "node:child_process"
import { mkdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { promisify } from "node:util"
import { linkInstalled } from "../support/Installed.ts"

/** The commit that is the previous version. CONTRIBUTING.md says when it moves forward. */
const previous = "a8a819cbf7cb654bf6f496a442b0b33d853941b1"

/** A sandbox's child may read these modules, and no link that leads to them. */
const readBySandboxes = ["isolated-vm", "node-gyp-build"]

const root = join(import.meta.dirname, "../..")
const run = promisify(execFile)

/** Takes the previous version out of the history, into a new folder within `parent`; answers that folder. */
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
  await refuseOtherVersions(folder)
  await linkInstalled(folder, readBySandboxes)
  return folder
}

interface Locked {
  readonly version?: string
  readonly integrity?: string
  readonly dev?: boolean
}

/** The packages that a gateway may load, as a lock file has them; those of the project itself are left out. */
const lockedIn = async (folder: string): Promise<ReadonlyMap<string, Locked>> => {
  const { packages } = JSON.parse(await readFile(join(folder, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Locked & { readonly link?: boolean }>>
  }
  return new Map(
    Object.entries(packages).filter(
      ([path, { dev, link }]) => path.startsWith("node_modules/") && dev !== true && link !== true
    )
  )
}

/** The previous version runs with what is installed for this one. That is the previous version only where it asks for the same. */
const refuseOtherVersions = async (folder: string): Promise<void> => {
  const present = await lockedIn(root)
  const others = [...(await lockedIn(folder))].flatMap(([path, { integrity, version }]) => {
    const now = present.get(path)
    if (now?.version === version && now?.integrity === integrity) return []
    return [`${path.slice("node_modules/".length)} ${version} (now ${now?.version ?? "none"})`]
  })
  if (others.length === 0) return
  throw new Error(
    `The previous version, commit ${previous}, has other dependencies than those that are installed: ${others.join(", ")}. Move the commit in test/upgrade/Previous.ts forward to one with the present dependencies.`
  )
}
