import { existsSync } from "node:fs"
import { readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { unpack } from "./DebianPackages.ts"

const cache = join(import.meta.dirname, "../../node_modules/.cache/faketime")

/** The library of Debian's package `libfaketime`. Null: it is not available here. */
export const clockLibrary = async (): Promise<string | null> => {
  const found = async (): Promise<string | null> => {
    const paths = existsSync(cache) ? await readdir(cache, { recursive: true }) : []
    const path = paths.find((path) => path.endsWith("libfaketimeMT.so.1"))
    return path === undefined ? null : join(cache, path)
  }
  const before = await found()
  if (before !== null) return before
  await unpack(["libfaketime"], cache)
  return found()
}

/** The clock of one process, which a test sets while the process runs. The monotonic clock, which Linux uses for timers, is not changed. */
export class FakeClock {
  /** For the environment of the process. */
  readonly settings: Readonly<Record<string, string>>
  readonly #file: string

  private constructor(library: string, file: string) {
    this.#file = file
    this.settings = {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: file,
      FAKETIME_NO_CACHE: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1"
    }
  }

  static async in(folder: string): Promise<FakeClock> {
    const library = await clockLibrary()
    if (library === null) throw new Error("Debian's package libfaketime cannot be had")
    const clock = new FakeClock(library, join(folder, "clock"))
    await clock.jump(0)
    return clock
  }

  /** From now on, the clock is wrong by so many seconds. */
  async jump(seconds: number): Promise<void> {
    await writeFile(this.#file, `${seconds < 0 ? "" : "+"}${seconds}\n`)
  }
}
