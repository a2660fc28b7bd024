import { spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"

const folder = import.meta.dirname

/** Installs what a package.json here names, from the registry that npm is set to, unless it is there. Runs no scripts of packages. */
export const install = (part: string, program: string): void => {
  const cwd = join(folder, part)
  if (existsSync(join(cwd, "node_modules", program))) return
  process.stderr.write(`installing ${join("benchmarks/rivals", part)} …\n`)
  const command = existsSync(join(cwd, "package-lock.json")) ? "ci" : "install"
  const { status } = spawnSync(
    "npm",
    [command, "--no-workspaces", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"],
    { cwd, stdio: "inherit" }
  )
  if (status !== 0) throw new Error(`npm could not install ${join("benchmarks/rivals", part)}`)
}
