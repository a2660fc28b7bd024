import { existsSync } from "node:fs"
import { mkdir, readdir, rm, writeFile } from "node:fs/promises"
import { join, resolve } from "node:path"
import { Effect } from "effect"
import { restoreData } from "@tidegate/embedded-postgres/Backup"
import { forgetRunners } from "@tidegate/storage/diagnosis/RunnerFacts"
import { checkSums, copyFile, syncFolders } from "@tidegate/embedded-postgres/Checksums"
import { embeddedHome, restoringFile } from "../Home.ts"
import { type Settings, SettingsError } from "../Settings.ts"
import { type DatabaseCheck, fine } from "../doctor/Check.ts"
import { keyFiles, onlyEmbedded, parts } from "./Backup.ts"

const refuse = (message: string) => new SettingsError({ message })

/**
 * Copies a backup into the home folder of these settings, which must be empty or absent. Checks all of it first, so a damaged backup leaves
 * nothing behind. Returns whether the installation has its secret keys.
 */
export const restoreBackup = Effect.fnUntraced(function* (given: Settings, from: string) {
  yield* onlyEmbedded(given)
  const backup = resolve(from)
  const present = yield* Effect.promise(() =>
    readdir(given.home).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return []
      return [error.code ?? "?"]
    })
  )
  if (present.length > 0) {
    yield* refuse(
      `${given.home} is not empty: a backup is restored into a new folder only. Name one in TIDEGATE_HOME, or move this one away`
    )
  }
  yield* checkSums(backup)
  const marker = restoringFile(given.home)
  yield* Effect.tryPromise({
    try: async () => {
      await mkdir(given.home, { recursive: true, mode: 0o700 })
      await writeFile(
        marker,
        "A backup is being restored here. If that was interrupted, empty this folder and restore it again.\n",
        {
          flush: true,
          mode: 0o600
        }
      )
      await copyFile(join(backup, parts.password), join(embeddedHome(given.home), "password"))
      for (const name of keyFiles) await copyFile(join(backup, parts.keys, name), join(given.home, name))
    },
    catch: (cause) =>
      refuse(
        `the backup cannot be restored to ${given.home} (${(cause as NodeJS.ErrnoException).code ?? String(cause)})`
      )
  })
  yield* restoreData(join(backup, parts.data), embeddedHome(given.home))
  yield* Effect.promise(async () => {
    await syncFolders(given.home)
    await rm(marker)
  })
  return given.secretKeys !== null || existsSync(join(given.home, "secrets.key"))
})

/**
 * The runners of the time of the backup do not work on this copy. While their last sign of life is only seconds old, the other runners would
 * give them work, and the doctor would call them unreachable.
 */
export const runnersForgotten: DatabaseCheck = {
  of: "database",
  name: "runners",
  about: "removes the runners of the time of the backup",
  look: Effect.map(forgetRunners, (count) =>
    fine(count === 0 ? "the backup names no runner" : `removed the entries of the backup's runners (${count})`)
  )
}
