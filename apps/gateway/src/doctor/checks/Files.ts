import { stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { apiKeyFile } from "../../Bootstrap.ts"
import { type Finding, fine, Installation, type MachineCheck, wrong } from "../Check.ts"

const othersMayRead = 0o077

/** The files with secrets in the home folder: only their owner may read them. */
export const files: MachineCheck = {
  of: "machine",
  name: "files",
  about: "who may read the files with keys",
  look: Effect.gen(function* () {
    const { settings } = yield* Installation
    const kept = [
      ...(settings.secretKeys === null ? [join(settings.home, "secrets.key")] : []),
      ...(settings.apiKey === null ? [apiKeyFile(settings.home)] : []),
      ...(settings.databaseUrl === null ? [join(settings.home, "postgres", "password")] : [])
    ]
    const found: Array<Finding> = []
    for (const path of kept) {
      const file = yield* Effect.promise(() => stat(path).catch(() => null))
      if (file !== null && (file.mode & othersMayRead) !== 0) {
        found.push(
          wrong(
            `others than its owner can read ${path}`,
            `chmod 600 ${path}; replace the key if others have an account here`
          )
        )
      }
    }
    return found.length > 0
      ? found
      : fine(kept.length === 0 ? "no keys are kept in files" : "only their owner can read the keys")
  })
}
