import { existsSync } from "node:fs"
import { mkdir, rename, statfs } from "node:fs/promises"
import { join, relative, resolve } from "node:path"
import { Effect } from "effect"
import { copyData } from "@tidegate/embedded-postgres/Backup"
import { copyFile, sumsFile, syncFolders, writeSummed, writeSums } from "@tidegate/embedded-postgres/Checksums"
import * as EmbeddedPostgres from "@tidegate/embedded-postgres/EmbeddedPostgres"
import { serverState } from "@tidegate/storage/diagnosis/ServerFacts"
import { embeddedHome } from "../Home.ts"
import { sizeOf } from "../doctor/Check.ts"
import { databaseOf } from "../OwnInstallation.ts"
import { type Settings, SettingsError } from "../Settings.ts"
import type { KeyRing } from "@tidegate/storage/secrets/Secrets"

/** The files with keys in the home folder. The first decrypts the secrets, the second is the demo team's API key. */
export const keyFiles = ["secrets.key", "api-key"] as const

/** Where the parts of a backup are in its folder. */
export const parts = { data: "data", keys: "keys", password: "password", about: "about" } as const

const refuse = (message: string) => new SettingsError({ message })

/** `file`: in the backup. `left out`: they are in the home, and were not wanted. `elsewhere`: in TIDEGATE_SECRET_KEYS. */
export type KeysAre = "file" | "left out" | "elsewhere"

export interface Made {
  readonly folder: string
  readonly files: number
  readonly keys: KeysAre
}

/** The backup is of one server; that of `DATABASE_URL` has its own tools. */
export const onlyEmbedded = Effect.fnUntraced(function* ({ databaseUrl }: Settings) {
  if (databaseUrl === null) return
  yield* refuse(
    "DATABASE_URL: this is for the embedded server only; back up a server of your own with its own tools (docs/backup.md), and secrets.key beside it"
  )
})

const isWithin = (path: string, folder: string): boolean => {
  const way = relative(folder, path)
  return !way.startsWith("..") && way !== path
}

/**
 * Makes a backup of the installation in the new folder `to`, while gateways work. The folder has its name only when everything in it is on disk.
 */
export const makeBackup = Effect.fnUntraced(function* (
  given: Settings,
  ring: KeyRing,
  options: { readonly to: string; readonly withKeys: boolean; readonly at: Date }
) {
  yield* onlyEmbedded(given)
  const to = resolve(options.to)
  const unfinished = `${to}.unfinished`
  if (existsSync(to)) yield* refuse(`${to} exists already: name a new folder for each backup`)
  if (existsSync(unfinished)) {
    yield* refuse(`${unfinished} exists: another backup is being made there, or one was interrupted; then remove it`)
  }
  if (isWithin(to, given.home))
    yield* refuse(`${to} is in the folder of the gateway itself: keep backups on another disk`)

  const postgres = yield* EmbeddedPostgres.start({ home: embeddedHome(given.home) })
  const { bytes, version } = yield* Effect.provide(serverState, databaseOf(given, ring))
  yield* Effect.tryPromise({
    try: () => mkdir(unfinished, { recursive: true, mode: 0o700 }),
    catch: (cause) => refuse(`${unfinished} cannot be made (${(cause as NodeJS.ErrnoException).code})`)
  })
  const { bavail, bsize } = yield* Effect.promise(() => statfs(unfinished))
  if (bavail * bsize < bytes) {
    yield* refuse(`only ${sizeOf(bavail * bsize)} are free at ${to}, and the database has ${sizeOf(bytes)}`)
  }

  const sums = new Map<string, string>()
  const data = yield* copyData(embeddedHome(given.home), postgres.superuserUrl, join(unfinished, parts.data))
  for (const [path, sum] of data) sums.set(`${parts.data}/${path}`, sum)
  const keys: KeysAre = given.secretKeys !== null ? "elsewhere" : options.withKeys ? "file" : "left out"
  const copied: Array<readonly [from: string, to: string]> = [
    [join(embeddedHome(given.home), "password"), parts.password]
  ]
  if (options.withKeys) {
    for (const name of keyFiles) copied.push([join(given.home, name), `${parts.keys}/${name}`])
  }
  const about = [
    "A backup of a Tidegate installation with its embedded PostgreSQL. To check it: sha256sum --check SHA256SUMS",
    `begun: ${options.at.toISOString()}`,
    `postgres: ${Math.floor(version / 10_000)}`,
    `keys: ${keys}`,
    ""
  ].join("\n")
  yield* Effect.tryPromise({
    try: async () => {
      for (const [from, name] of copied) {
        const sum = await copyFile(from, join(unfinished, name))
        if (sum !== null) sums.set(name, sum)
      }
      sums.set(parts.about, await writeSummed(join(unfinished, parts.about), about))
      await writeSums(unfinished, sums)
      await syncFolders(unfinished)
      await rename(unfinished, to)
      await syncFolders(to)
    },
    catch: (cause) =>
      refuse(
        `the backup cannot be written (${(cause as NodeJS.ErrnoException).code ?? String(cause)}) at ${unfinished}`
      )
  })
  return { folder: to, files: sums.size, keys } satisfies Made
}, Effect.scoped)

export { sumsFile }
