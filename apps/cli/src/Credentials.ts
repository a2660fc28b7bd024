import { mkdir, readFile, rm, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { CliFailure } from "./Failure.ts"
import { writeOwnFile } from "./OwnFile.ts"

/** The credentials that `login` stores: a key, and its team. */
export const Stored = Schema.Struct({ url: Schema.String, key: Schema.String, team: Schema.optionalKey(Schema.String) })
export type Stored = typeof Stored.Type

const largestFile = 64 * 1024

export const credentialsFile = (): string => {
  const configured = process.env["XDG_CONFIG_HOME"]
  const folder = configured === undefined || configured === "" ? join(homedir(), ".config") : configured
  return join(folder, "tidegate", "credentials.json")
}

const failed = (message: string) => (): CliFailure => new CliFailure({ code: "failed", message })

/** Null if there are none. */
export const readCredentials: Effect.Effect<Stored | null, CliFailure> = Effect.gen(function* () {
  const path = credentialsFile()
  const found = yield* Effect.promise(() => stat(path).catch(() => null))
  if (found === null) return null
  // Fails closed, because anybody who can read the file can act as its owner.
  if (process.platform !== "win32" && (found.mode & 0o077) !== 0) {
    return yield* failed(`${path} can be read by others: chmod 600 it, or sign in again`)()
  }
  if (found.size > largestFile) return yield* failed(`${path} is not a file of credentials`)()
  const text = yield* Effect.tryPromise({ try: () => readFile(path, "utf8"), catch: failed(`${path} cannot be read`) })
  return yield* Effect.mapError(
    Schema.decodeUnknownEffect(Schema.fromJsonString(Stored))(text),
    failed(`${path} is not a file of credentials: sign in again`)
  )
})

export const writeCredentials = (stored: Stored): Effect.Effect<string, CliFailure> =>
  Effect.tryPromise({
    try: async () => {
      const path = credentialsFile()
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await writeOwnFile(path, `${JSON.stringify(stored)}\n`)
      return path
    },
    catch: (error) => failed(`the credentials cannot be kept: ${(error as Error).message}`)()
  })

export const removeCredentials: Effect.Effect<void> = Effect.promise(() => rm(credentialsFile(), { force: true }))
