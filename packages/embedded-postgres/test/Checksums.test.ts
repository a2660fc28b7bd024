import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { appendFile, mkdir, rm, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { checkSums, copyFile, filesIn, sumsFile, writeSummed, writeSums } from "../src/Checksums.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

/** A folder with files and their checksums; one file is larger than what is read at a time. */
const made = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const folder = join(home, "backup")
  yield* Effect.promise(async () => {
    await writeFile(join(home, "source"), Buffer.alloc(2_500_000, 7))
    const sums = new Map<string, string>()
    sums.set("data/base/1", (await copyFile(join(home, "source"), join(folder, "data/base/1")))!)
    sums.set("about", await writeSummed(join(folder, "about"), "a backup\n"))
    await writeSums(folder, sums)
  })
  return { home, folder }
})

const refusal = (folder: string) => Effect.map(Effect.flip(checkSums(folder)), ({ message }) => message)

it.effect("Checksums of a complete folder agree, here and by sha256sum, and only its owner can read it", () =>
  Effect.gen(function* () {
    const { folder, home } = yield* made
    expect(yield* checkSums(folder)).toEqual(["about", "data/base/1"])
    expect(String(execFileSync("sha256sum", ["--check", sumsFile], { cwd: folder }))).toBe(
      "about: OK\ndata/base/1: OK\n"
    )
    for (const path of yield* Effect.promise(() => filesIn(folder))) {
      expect((yield* Effect.promise(() => stat(join(folder, path)))).mode & 0o077).toBe(0)
    }
    expect(yield* Effect.promise(() => copyFile(join(home, "nothing"), join(folder, "nothing")))).toBe(null)
    expect(yield* checkSums(folder)).toHaveLength(2)
  })
)

it.effect("Checksums refuse a folder with a file changed, missing or added, and a damaged list", () =>
  Effect.gen(function* () {
    const after = (change: (folder: string) => Promise<unknown>) =>
      Effect.gen(function* () {
        const { folder } = yield* made
        yield* Effect.promise(() => change(folder))
        return (yield* refusal(folder)).replace(folder, "it")
      })
    const list = (folder: string) => join(folder, sumsFile)
    expect(yield* after((folder) => appendFile(join(folder, "data/base/1"), "x"))).toBe(
      "The backup it is damaged: data/base/1 has changed"
    )
    expect(yield* after((folder) => rm(join(folder, "about")))).toBe(
      "The backup it is damaged: about is missing, or is no file that can be read"
    )
    expect(yield* after((folder) => writeFile(join(folder, "more"), ""))).toBe(
      `The backup it is damaged: more is not in ${sumsFile}`
    )
    expect(yield* after((folder) => writeFile(list(folder), ""))).toContain(`is not in ${sumsFile}`)
    expect(yield* after((folder) => appendFile(list(folder), "zz  about\n"))).toContain(
      "a line of SHA256SUMS is no checksum"
    )
    expect(yield* after((folder) => appendFile(list(folder), `${"0".repeat(64)}  ../../etc/passwd\n`))).toContain(
      "SHA256SUMS names ../../etc/passwd"
    )
    expect(yield* after((folder) => rm(list(folder)))).toContain("is no complete backup")
    const replaced = after(async (folder) => {
      await rm(join(folder, "about"))
      await mkdir(join(folder, "about"))
    })
    expect(yield* replaced).toContain("about is missing, or is no file that can be read")
  })
)
