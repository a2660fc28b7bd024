import { randomBytes } from "node:crypto"
import { chmod, open, realpath, rename, rm, stat, writeFile } from "node:fs/promises"

/**
 * Writes a file that only its owner can read. It writes a temporary file and renames it, so that nobody reads half of the file or
 * reads it before its permissions are set. If the path is no regular file, such as a pipe, it is written directly.
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
