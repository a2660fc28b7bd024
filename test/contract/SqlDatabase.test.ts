import { Effect, Exit, Scope } from "effect"
import { expect } from "vitest"
import { type OwnPostgres, ownPostgres } from "../../packages/foreign-databases/test/OwnPostgres.ts"
import { ownIt as gatewayIt } from "../support/it.ts"
import { blocksOf, shellIn } from "../support/Page.ts"
import { patience } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** `docs/destinations/sql-database.md`, word for word, as somebody reads it who has a gateway and a database of their own. */

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
  "The SQL page leads from an empty database to the first row",
  { timeout: 4 * patience },
  async ({ database, gateway, scope }) => {
    const folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    const shell = await shellIn(gateway, folder, {
      PGHOST: "127.0.0.1",
      PGPORT: `${database.port}`,
      PGDATABASE: database.database
    })

    const found: Array<unknown> = []
    let typed = ""
    for (const { code, language } of await blocksOf("destinations/sql-database.md", ["sh", "sql"])) {
      if (language === "sh") {
        typed += code
        continue
      }
      // What has been typed so far is done before the database is looked at.
      if (found.length > 0) await shell(typed)
      for (const statement of code.split(/;\n/).filter((text) => text.trim() !== "")) {
        found.push(...(await Effect.runPromise(database.query(statement))), statement)
      }
    }
    expect(found.filter((one) => typeof one === "object")).toEqual([{ order: "7", path: "/orders", delivered: true }])
    const visible = JSON.stringify((await gateway.call("GET", "/destinations")).body) + (await gateway.logged())
    expect(visible).toContain("orders-table")
    expect(visible).not.toContain("change-me")
  }
)
