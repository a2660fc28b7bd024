import { spawn } from "node:child_process"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { delimiter, dirname, join, resolve } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { expect } from "vitest"
import { type OwnPostgres, ownPostgres } from "../../packages/sessions/test/OwnPostgres.ts"
import { it as gatewayIt } from "../support/it.ts"
import { patience } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** `docs/destinations/sql-database.md`, word for word, as somebody reads it who has a gateway and a database of their own. */

const page = await readFile(resolve(import.meta.dirname, "../../docs/destinations/sql-database.md"), "utf8")

const blocks = [...page.matchAll(/^```(sh|sql)\n(.*?)^```/gms)].map(([, language, code]) => ({ language, code: code! }))

const it = gatewayIt
  .extend("scope", { scope: "file" }, async ({}, { onCleanup }) => {
    const scope = Scope.makeUnsafe()
    onCleanup(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    return scope
  })
  .extend("database", { scope: "file" }, ({ scope }): Promise<OwnPostgres> =>
    Effect.runPromise(ownPostgres.pipe(Scope.provide(scope)))
  )

it(
  "the page leads from an empty database to the first row",
  { timeout: 4 * patience },
  async ({ database, gateway, scope }) => {
    const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    await mkdir(join(folder, ".tidegate"))
    await writeFile(join(folder, ".tidegate/api-key"), `${gateway.key}\n`)
    const PATH = `${dirname(process.execPath)}${delimiter}${process.env["PATH"] ?? ""}`
    const env = { ...process.env, PATH, PGHOST: "127.0.0.1", PGPORT: `${database.port}`, PGDATABASE: database.database }

    const found: Array<unknown> = []
    let typed = ""
    for (const { code, language } of blocks) {
      if (language === "sh") {
        typed += code
        continue
      }
      // What has been typed so far is done before the database is looked at.
      if (found.length > 0) await shell(typed.replaceAll("http://localhost:8080", gateway.origin), folder, env)
      for (const statement of code.split(/;\n/).filter((text) => text.trim() !== "")) {
        found.push(...(await Effect.runPromise(database.query(statement))), statement)
      }
    }
    expect(found.filter((one) => typeof one === "object")).toEqual([{ order: "7", path: "/orders", delivered: true }])
    const told = JSON.stringify((await gateway.call("GET", "/destinations")).body) + (await gateway.logged())
    expect(told).toContain("orders-table")
    expect(told).not.toContain("change-me")
  }
)

const shell = async (commands: string, cwd: string, env: NodeJS.ProcessEnv): Promise<void> => {
  // What the page waits for may never come: then the shell ends, and says so by its signal.
  const shell = spawn("sh", ["-eu"], { cwd, env, timeout: 2 * patience })
  shell.stdin.end(commands)
  const [, error] = await Promise.all([shell.stdout.toArray(), shell.stderr.toArray()])
  const code = shell.exitCode ?? (await new Promise<number | null>((end) => shell.once("close", end)))
  expect(code, Buffer.concat(error).toString()).toBe(0)
}
