import { execFile } from "node:child_process"
import { mkdir, readdir, rm } from "node:fs/promises"
import { promisify } from "node:util"

const run = promisify(execFile)

/**
 * Unpacks packages of Debian or Ubuntu into a folder, because that needs no root. Packages that this release does not have are left out: the caller
 * looks whether it has what it needs.
 */
export const unpack = async (packages: ReadonlyArray<string>, folder: string): Promise<void> => {
  const fetched = `${folder}.${process.pid}`
  await mkdir(fetched, { recursive: true })
  for (const one of packages) await run("apt-get", ["download", one], { cwd: fetched }).catch(() => {})
  for (const file of await readdir(fetched)) await run("dpkg", ["-x", file, folder], { cwd: fetched }).catch(() => {})
  await rm(fetched, { recursive: true, force: true })
}
