import { readFileSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Exit, Scope } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { authority, ownPostgres, type OwnPostgres } from "../../packages/foreign-databases/test/OwnPostgres.ts"
import { type Pooler, pooler, program } from "../../packages/foreign-databases/test/Pooler.ts"
import { Gateways } from "../support/Gateways.ts"
import { query } from "../support/sql.ts"
import { Target } from "../support/Target.ts"
import { eventually } from "../support/Waiting.ts"
import { temporaryFolder } from "../temporaryFolder.ts"

/** What `docs/postgresql.md` says of roles, TLS and poolers, with the statements of the page itself. */

const file = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** The statements of the page's block that begins with this comment. */
const statementsOf = (comment: string): ReadonlyArray<string> => {
  const blocks = [...readFileSync(file("docs/postgresql.md"), "utf8").matchAll(/```sql\n([^]*?)```/g)].map(
    ([, sql]) => sql!
  )
  const [found, ...more] = blocks.filter((sql) => sql.startsWith(`-- ${comment}\n`))
  if (found === undefined || more.length > 0) throw new Error(`docs/postgresql.md has no single block "${comment}"`)
  return found
    .replace(/^--.*\n/, "")
    .split(/;\n/)
    .filter((statement) => statement.trim() !== "")
}

/** Both blocks of the page have it. */
const password = "choose-a-password"

describe("Gateway with a PostgreSQL server of the operator", () => {
  const scope = Scope.makeUnsafe()
  let server: OwnPostgres
  let folder: string
  let roots: string
  let strangers: string

  beforeAll(async () => {
    server = await Effect.runPromise(ownPostgres.pipe(Scope.provide(scope)))
    folder = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    roots = join(folder, "authority.pem")
    strangers = join(folder, "strangers.pem")
    await writeFile(roots, authority)
    await writeFile(strangers, readFileSync(file("packages/egress/test/fixtures/self-signed.pem")))
    await Effect.runPromise(Effect.forEach(statementsOf("A database of its own"), server.query))
    await Effect.runPromise(server.query("create database shop"))
  })

  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const urlOf = (database: string, parameters: string, host = "127.0.0.1"): string =>
    `postgres://webhooks:${password}@${host}:${server.port}/${database}${parameters}`

  /** Starts processes, sends a request through them, and passes on what is to be looked at while they run. */
  const delivering = async (url: string, look: (target: Target) => Promise<void>): Promise<void> => {
    const own = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    const target = await Target.start()
    const gateways = await Gateways.start(own, url, { edge: "edge", runner: "runner" })
    try {
      const source = await gateways.api("edge", "POST", "/sources", { name: "shop" })
      const { id: destination_id } = await gateways.api("edge", "POST", "/destinations", {
        name: "till",
        config: { url: target.origin }
      })
      await gateways.api("edge", "POST", "/connections", { name: "web", source_id: source.id, destination_id })
      expect((await gateways.call("edge", "POST", `/e/${source.id}`, { body: "order 7" })).status).toBe(200)
      expect((await eventually("the delivery", () => target.received[0])).body.toString()).toBe("order 7")
      await look(target)
    } finally {
      await gateways.close()
      await target.close()
    }
  }

  /** What a process says that does not start. */
  const refusal = async (url: string): Promise<string> => {
    const own = await Effect.runPromise(temporaryFolder.pipe(Scope.provide(scope)))
    const failure = await Gateways.start(own, url, { all: "all" }).then(
      async (gateways) => {
        await gateways.close()
        return "it has started"
      },
      (error: unknown) => String(error)
    )
    return /^tidegate: (.*)$/m.exec(failure)?.[1] ?? failure
  }

  const admin = (database: string, statement: string) => {
    const login = `${server.superuser}:${encodeURIComponent(server.password)}`
    return query(`postgres://${login}@127.0.0.1:${server.port}/${database}`, statement)
  }

  it("Gateway runs with the role of the page, which owns its database and nothing else, and all its sessions use TLS", async () => {
    await delivering(urlOf("webhooks", `?sslmode=verify-full&sslrootcert=${roots}`), async () => {
      const [role] = await admin(
        "webhooks",
        `select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as more,
          (select count(*)::int from pg_auth_members where member = r.oid) as memberships
        from pg_roles r where rolname = 'webhooks'`
      )
      expect(role).toEqual({ more: false, memberships: 0 })
      const sessions = await admin(
        "webhooks",
        `select application_name as name, ssl, count(*)::int as sessions from pg_stat_activity join pg_stat_ssl using (pid)
        where usename = 'webhooks' group by 1, 2 order by 1`
      )
      expect(sessions.map(({ name }) => name)).toContain("tidegate-journal")
      expect(sessions.filter(({ ssl }) => ssl !== true)).toEqual([])
    })
  })

  it("Gateway runs in a schema of its own in a database of somebody else", async () => {
    for (const statement of statementsOf("A schema of its own")) await admin("shop", statement)
    await admin("shop", "revoke all on schema public from public")
    await admin("shop", "revoke temporary on database shop from public")
    await delivering(urlOf("shop", `?sslmode=verify-full&sslrootcert=${roots}`), async () => {
      const made = await admin(
        "shop",
        `select relnamespace::regnamespace::text as schema, count(*) > 100 as many from pg_class
        where relowner = 'webhooks'::regrole and relkind in ('r', 'p') group by 1`
      )
      expect(made).toEqual([{ schema: "webhooks", many: true }])
    })
  })

  it("Gateway refuses a server with a certificate that it cannot check, and says in one sentence what to change", async () => {
    const at = `DATABASE_URL: the PostgreSQL at 127.0.0.1:${server.port}/webhooks`
    const unknown = `${at} has a certificate of an unknown authority: name the file with the authority's certificate in sslrootcert`
    expect(await refusal(urlOf("webhooks", "?sslmode=verify-full"))).toBe(unknown)
    expect(await refusal(urlOf("webhooks", `?sslmode=verify-full&sslrootcert=${strangers}`))).toBe(unknown)
    expect(await refusal(urlOf("webhooks", `?sslmode=verify-full&sslrootcert=${roots}`, "localhost"))).toBe(
      `DATABASE_URL: the PostgreSQL at localhost:${server.port}/webhooks has a certificate for another name: use a name of the certificate in the URL`
    )
  })

  describe.skipIf(program === undefined)("behind PgBouncer", () => {
    const behind = async (mode: string, more: ReadonlyArray<string>): Promise<string> => {
      const { port }: Pooler = await Effect.runPromise(
        pooler(server.port, "webhooks", { username: "webhooks", password }, mode, 40, more).pipe(Scope.provide(scope))
      )
      return refusal(`postgres://webhooks:${password}@127.0.0.1:${port}/webhooks`)
    }

    it("Gateway refuses a pooler, whether it refuses the settings of sessions or drops them", async () => {
      expect(await behind("session", [])).toMatch(
        /^DATABASE_URL: the PostgreSQL at \S+ is a pooler, which refuses the settings of the gateway's sessions: connect to the server itself/
      )
      const dropped =
        "ignore_startup_parameters = lock_timeout,idle_in_transaction_session_timeout,jit,random_page_cost,statement_timeout,plan_cache_mode,enable_seqscan,enable_mergejoin,enable_nestloop,enable_sort,enable_bitmapscan"
      expect(await behind("session", [dropped])).toBe(
        "DATABASE_URL: a pooler in between drops the settings of the gateway's sessions; connect to the server itself, because the gateway has pools of its own"
      )
    })
  })
})
