import { randomBytes } from "node:crypto"
import { chmod, open, realpath, rename, rm, stat, writeFile } from "node:fs/promises"

/**
 * Writes a file for its owner alone. It is written beside the old one and moved into its place: nobody reads half of it, and it
 * is never readable by others. What is no file, such as a pipe, is written to as it is.
 */
export const writeOwnFile = async (path: string, text: string): Promise<void> => {
  const target = await realpath(path).catch(() => path)
  const there = await stat(target).catch(() => null)
  if (there !== null && !there.isFile()) return writeFile(target, text)
  const written = `${target}.${randomBytes(6).toString("hex")}`
  try {
    const file = await open(written, "wx", 0o600)
    try {
      await file.writeFile(text)
    } finally {
      await file.close()
    }
    await chmod(written, 0o600)
    await rename(written, target)
  } catch (error) {
    await rm(written, { force: true })
    throw error
  }
}
