import { mkdir, readdir, symlink } from "node:fs/promises"
import { join } from "node:path"

const installed = join(import.meta.dirname, "../../node_modules")

/** Links the installed modules into another folder with the project in it. The project's own packages are those of that folder. */
export const linkInstalled = async (folder: string): Promise<void> => {
  await mkdir(join(folder, "node_modules"))
  const modules = (await readdir(installed)).filter((name) => !name.startsWith("."))
  for (const name of [".bin", ".package-lock.json", ...modules]) {
    const to = join(folder, "node_modules", name)
    await symlink(name === "@tidegate" ? join(folder, "packages") : join(installed, name), to)
  }
}
