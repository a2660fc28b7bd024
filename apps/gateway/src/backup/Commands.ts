import { Clock, Console, Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { checkSums } from "@tidegate/embedded-postgres/Checksums"
import { loadKeys } from "../Bootstrap.ts"
import { keys as keysCheck } from "../doctor/checks/Keys.ts"
import { schema } from "../doctor/checks/Schema.ts"
import { examine, isWell, linesOf } from "../doctor/Doctor.ts"
import { isInstalled } from "../OwnInstallation.ts"
import { settings } from "../Settings.ts"
import { type KeysAre, makeBackup, onlyEmbedded, sumsFile } from "./Backup.ts"
import { restoreBackup, runnersForgotten } from "./Restore.ts"

const aboutKeys: { readonly [keys in KeysAre]: string } = {
  file: "It contains the secret keys: whoever has this folder can read all data and all secrets. Keep it as you keep them.",
  "left out":
    "It does NOT contain secrets.key and api-key. Keep them elsewhere: without secrets.key a restored gateway does not start, and no secret can be read again.",
  elsewhere:
    "It does NOT contain the secret keys, which are in TIDEGATE_SECRET_KEYS. A restored gateway needs the same value."
}

const folder = (description: string) => Argument.String("folder").pipe(Argument.withDescription(description))

export const backup = Command.make(
  "backup",
  {
    folder: folder("A new folder for the backup, on another disk"),
    withoutKeys: Flag.Boolean("without-keys").pipe(
      Flag.withDefault(false),
      Flag.withDescription(
        "Leave secrets.key and api-key out. Keep them elsewhere: the backup is of no use without secrets.key"
      )
    )
  },
  Effect.fn(function* (asked) {
    const given = yield* settings
    yield* onlyEmbedded(given)
    yield* isInstalled(given)
    const at = new Date(yield* Clock.currentTimeMillis)
    const made = yield* makeBackup(given, yield* loadKeys(given), {
      to: asked.folder,
      withKeys: !asked.withoutKeys,
      at
    })
    yield* Console.log(`${made.folder}: ${made.files} files, with their checksums in ${sumsFile}`)
    yield* Console.log(`Everything that was acknowledged before ${at.toISOString()} is in it.`)
    yield* Console.log(aboutKeys[made.keys])
  })
).pipe(
  Command.withDescription(
    "Makes a backup of the embedded database and the keys, while gateways work. For DATABASE_URL see backup.md"
  )
)

export const restore = Command.make(
  "restore",
  {
    folder: folder("The folder of the backup"),
    check: Flag.Boolean("check").pipe(
      Flag.withDefault(false),
      Flag.withDescription("Only check that the backup is complete and undamaged")
    )
  },
  Effect.fn(function* (asked) {
    if (asked.check) {
      const files = yield* checkSums(asked.folder)
      yield* Console.log(`${asked.folder}: ${files.length} files are there and unchanged`)
      return
    }
    const given = yield* settings
    const hasKeys = yield* restoreBackup(given, asked.folder)
    if (!hasKeys) {
      yield* Console.log(`${given.home}: the data is restored. The backup is without keys:`)
      yield* Console.log(
        `put secrets.key of the installation into ${given.home}, readable by its owner only, before you start the gateway`
      )
      return
    }
    // The server starts once and repeats the log: what cannot work should be known now.
    const results = yield* examine([schema, keysCheck, runnersForgotten], given, yield* loadKeys(given))
    for (const line of linesOf(results)) yield* Console.log(line)
    process.exitCode = isWell(results) ? 0 : 1
    yield* Console.log(`${given.home}: restored. Start the gateway with this TIDEGATE_HOME`)
  })
).pipe(Command.withDescription("Restores a backup into a new TIDEGATE_HOME. Refuses a folder that is not empty"))
