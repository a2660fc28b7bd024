import { cp, mkdir, readdir, symlink } from "node:fs/promises"
import { join } from "node:path"

const installed = join(import.meta.dirname, "../../node_modules")

/**
 * Links what is installed here into another folder with the project in it, except for what is named: that is copied. The project's own
 * packages are those of that folder.
 */
export const linkInstalled = async (folder: string, copied: ReadonlyArray<string> = []): Promise<void> => {
  await mkdir(join(folder, "node_modules"))
  const modules = (await readdir(installed)).filter((name) => !name.startsWith("."))
  for (const name of [".bin", ".package-lock.json", ...modules]) {
    const to = join(folder, "node_modules", name)
    if (copied.includes(name)) await cp(join(installed, name), to, { recursive: true })
    else await symlink(name === "@tidegate" ? join(folder, "packages") : join(installed, name), to)
  }
}
