import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { writeOwnFile } from "../src/OwnFile.ts"

it("Credentials file is readable by its owner alone and is written without leftover files", async () => {
  const folder = await mkdtemp(join(tmpdir(), "own-"))
  try {
    const path = join(folder, "a")
    const link = join(folder, "b")
    await writeFile(path, "old", { mode: 0o644 })
    await symlink(path, link)
    await writeOwnFile(link, "new")
    expect(await readFile(path, "utf8")).toBe("new")
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    await expect(writeOwnFile(join(folder, "none/c"), "new")).rejects.toThrow("ENOENT")
    expect((await readdir(folder)).toSorted()).toEqual(["a", "b"])
  } finally {
    await rm(folder, { recursive: true })
  }
})
