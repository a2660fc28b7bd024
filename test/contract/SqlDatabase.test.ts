import { Effect, Exit, Scope } from "effect"
import { expect } from "vitest"
import { type OwnPostgres, ownPostgres } from "../../packages/foreign-databases/test/OwnPostgres.ts"
import { ownIt as gatewayIt } from "../support/it.ts"
import { request } from "../support/RawHttp.ts"
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

it("Events that wait for a SQL destination are rows of few statements, and each has an attempt of its own", async ({
  database,
  gateway
}) => {
  const ask = (statement: string) => Effect.runPromise(database.query(statement))
  // Names of this try alone: the server is that of the file, and has what an earlier try has made.
  const [table, username] = ["batched", "writer"].map((name) => gateway.name(name).replaceAll("-", "_")) as [
    string,
    string
  ]
  await ask(`create table "${table}" (event_id text primary key, payload jsonb check ((payload->>'n')::int <> 7))`)
  await ask(`create role "${username}" login password 'change-me'`)
  await ask(`grant insert, select on "${table}" to "${username}"`)
  const destination = await gateway.api("POST", "/destinations", {
    name: gateway.name("batched"),
    type: "SQL_DATABASE",
    config: {
      host: "127.0.0.1",
      port: database.port,
      database: database.database,
      table,
      event_id_column: "event_id",
      conflict_mode: "IGNORE",
      tls_mode: "disable",
      batch: { max_count: 20, max_wait_ms: 1_000 },
      auth_type: "DATABASE_PASSWORD",
      auth: { username, password: "change-me" }
    }
  })
  const source = await gateway.source()
  const { id } = await gateway.connection(source, destination, [
    { type: "retry", strategy: "linear", interval: 1_000, count: 1 }
  ])
  await gateway.api("PUT", `/connections/${id}/pause`)
  for (let n = 0; n < 60; n++) await request(gateway.port, { path: `/e/${source.id}`, body: JSON.stringify({ n }) })
  await gateway.api("PUT", `/connections/${id}/unpause`)
  const attempts = await gateway.eventually("each event has ended", async () => {
    const rows = await gateway.sql(
      `select event_id, error_code from attempts
        where event_id in (select id from events where source_id = $1 and status in ('SUCCESSFUL', 'FAILED'))`,
      [source.id]
    )
    return rows.length === 60 ? rows : null
  })
  expect(new Set(attempts.map(({ event_id }) => event_id)).size).toBe(60)
  expect(attempts.flatMap(({ error_code }) => error_code ?? [])).toEqual(["DB_CONSTRAINT"])
  const [found] = await ask(
    `select count(*)::int as rows, count(distinct xmin::text)::int as statements from "${table}"`
  )
  expect(found).toMatchObject({ rows: 59 })
  // Three full ones, of which the refused one was halved five times.
  expect(found!["statements"]).toBeLessThan(20)
})
