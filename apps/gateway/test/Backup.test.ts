import { mkdir, readdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { makeBackup } from "../src/backup/Backup.ts"
import { restoreBackup } from "../src/backup/Restore.ts"
import { loadKeys, makeHome } from "../src/Bootstrap.ts"
import { restoringFile } from "../src/Home.ts"
import { settings } from "../src/Settings.ts"

const read = (env: Record<string, string>) =>
  Effect.provideService(settings, ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))

const messageOf = <A, R>(effect: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

it.effect("Backup refuses a folder that exists, one that another backup uses, and one inside of the gateway's", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const given = yield* read({ TIDEGATE_HOME: join(folder, "home") })
    const keys = yield* loadKeys(given)
    const refusal = (to: string) => messageOf(makeBackup(given, keys, { to, withKeys: true, at: new Date() }))
    yield* Effect.promise(() => mkdir(join(folder, "there")))
    yield* Effect.promise(() => mkdir(join(folder, "busy.unfinished")))
    expect(yield* refusal(join(folder, "there"))).toContain("exists already")
    expect(yield* refusal(join(folder, "busy"))).toContain("another backup is being made there")
    expect(yield* refusal(join(folder, "home", "backup"))).toContain("in the folder of the gateway itself")
    // Nothing was begun.
    expect((yield* Effect.promise(() => readdir(folder))).sort()).toEqual(["busy.unfinished", "home", "there"])
  }).pipe(Effect.provide(NodeServices.layer))
)

it.effect("Backup and restore refuse a database that is not the embedded one", () =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const given = yield* read({ TIDEGATE_HOME: folder, DATABASE_URL: "postgres://ada@127.0.0.1:1/none" })
    const keys = yield* loadKeys(given)
    const to = join(folder, "..", "never")
    expect(yield* messageOf(makeBackup(given, keys, { to, withKeys: true, at: new Date() }))).toContain(
      "docs/backup.md"
    )
    expect(yield* messageOf(restoreBackup(given, to))).toContain("docs/backup.md")
  }).pipe(Effect.provide(NodeServices.layer))
)

it.effect("No gateway starts in a folder whose restore was interrupted, and no backup is restored there", () =>
  Effect.gen(function* () {
    const home = yield* temporaryFolder
    const given = yield* read({ TIDEGATE_HOME: home })
    yield* makeHome(given)
    yield* Effect.promise(() => writeFile(restoringFile(home), ""))
    expect(yield* messageOf(makeHome(given))).toContain("empty the folder and restore it again")
    expect(yield* messageOf(restoreBackup(given, join(home, "backup")))).toContain("is not empty")
  })
)
