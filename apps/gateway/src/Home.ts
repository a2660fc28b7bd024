import { existsSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Config, Effect } from "effect"
import { SettingsError } from "./SettingsError.ts"

export const homeSetting = Config.withDefault(Config.String("TIDEGATE_HOME"), ".tidegate")

/** It exists while a backup is being restored there. A gateway that started then would create a new database. */
export const restoringFile = (home: string): string => join(home, "RESTORING")

/** Folder of the embedded database. */
export const embeddedHome = (home: string): string => join(home, "postgres")

/**
 * Makes a folder and those above it. The `recursive` of Node is not used: it tries for ever where the folder above is there and
 * says all the same that there is none, as `/proc` does.
 */
const makeFolder = async (path: string): Promise<void> => {
  const make = () => mkdir(path, { mode: 0o700 })
  try {
    await make().catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT" || dirname(path) === path) throw error
      await makeFolder(dirname(path))
      await make()
    })
  } catch (error) {
    // It is there, made by another process perhaps. If it is a file, whoever opens something in it says so.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
  }
}

/** Makes the home folder, unless a backup is being restored there. */
export const prepareHome = Effect.fnUntraced(function* (home: string) {
  if (existsSync(restoringFile(home))) {
    yield* new SettingsError({
      message: `TIDEGATE_HOME: a backup is being restored to ${home}, or that was interrupted; then empty the folder and restore it again`
    })
  }
  yield* Effect.tryPromise({
    try: () => makeFolder(home),
    catch: (error) =>
      new SettingsError({
        message: `TIDEGATE_HOME: the folder ${home} cannot be made (${(error as NodeJS.ErrnoException).code}); it must be one that this user may write to`
      })
  })
})
