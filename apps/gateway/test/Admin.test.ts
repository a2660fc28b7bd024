import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { adminFromSources } from "../../../test/support/Admin.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

describe("Admin command without an installation", () => {
  it.each<[string, Record<string, string>]>([
    ["a folder without one", {}],
    ["a database without the keys of what is in it", { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }]
  ])("Admin command creates no installation and reports that there is none: %s", async (_, settings) => {
    const { found, run } = await Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const folder = yield* temporaryFolder
          const home = join(folder, "home")
          const run = yield* Effect.promise(() =>
            adminFromSources({ TIDEGATE_HOME: home, ...settings }, "teams", "list")
          )
          return { run, found: yield* Effect.promise(() => readdir(folder)) }
        })
      )
    )
    expect(run).toMatchObject({ code: 1, said: "" })
    expect(run.complained).toContain("there is no installation here")
    expect(found).toEqual([])
  })
})
