import { Effect, Exit, Redacted, Scope } from "effect"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { start } from "../../packages/embedded-postgres/src/EmbeddedPostgres.ts"
import * as Home from "../../packages/embedded-postgres/src/Home.ts"
import { accessTo } from "../../packages/embedded-postgres/src/Provision.ts"
import * as Postmaster from "../../packages/embedded-postgres/src/Postmaster.ts"
import { query, type Row } from "../support/sql.ts"
import { waitUntil } from "../support/Waiting.ts"

/** The database of the processes under test, as the harness sees it: to look into, and to kill. */
export interface Postgres {
  readonly url: string
  /** Runs one statement on a new connection, so that an earlier fault cannot affect it. */
  readonly query: (statement: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>
  /** SIGKILL to the server's main process. */
  readonly kill: () => void
  /** Sends SIGSTOP to the server and its sessions. Returns a function that lets them continue. */
  readonly freeze: () => () => void
  /** Whether each flush of the log takes 0.1 s longer from now on. */
  readonly slowDown: (isSlow: boolean) => Promise<void>
  /** Completes when the server answers, whoever has started it. */
  readonly back: () => Promise<number>
  readonly close: () => Promise<void>
}

/** A server of the harness, for processes with a DATABASE_URL. When it is killed, the harness starts it again. */
export const standalone = async (folder: string): Promise<Postgres> => {
  const scope = Scope.makeUnsafe()
  const home = await Effect.runPromise(Home.open(join(folder, "postgres")))
  const server = await Effect.runPromise(start({ home: home.path }).pipe(Scope.provide(scope)))
  return postgres(server, home, () => Effect.runPromise(Scope.close(scope, Exit.void)))
}

/** The embedded server of a gateway without DATABASE_URL. The gateway has to start it again. */
export const embedded = async (gatewayHome: string): Promise<Postgres> => {
  const home = await Effect.runPromise(Home.open(join(gatewayHome, "postgres")))
  const password = await Effect.runPromise(Home.password(home))
  return postgres(accessTo(Home.rememberedPort(home)!, password), home, () => Promise.resolve())
}

interface Access {
  readonly url: Redacted.Redacted
  readonly superuserUrl: Redacted.Redacted
}

const postgres = (access: Access, home: Home.Home, close: () => Promise<void>): Postgres => {
  const url = Redacted.value(access.url)
  const superuserUrl = Redacted.value(access.superuserUrl)
  const ask: Postgres["query"] = (statement, parameters) => query(url, statement, parameters)
  return {
    url,
    query: ask,
    kill: () => {
      const server = Postmaster.find(home.data)
      if (server !== undefined) Postmaster.send(server.pid, "SIGKILL")
    },
    freeze: () => {
      const server = Postmaster.find(home.data)?.pid
      if (server === undefined) throw new Error("PostgreSQL does not run")
      // The server is frozen first, so that it starts no session that would be missed.
      Postmaster.send(server, "SIGSTOP")
      const all = [server, ...childrenOf(server)]
      for (const pid of all) Postmaster.send(pid, "SIGSTOP")
      return () => {
        for (const pid of all.toReversed()) Postmaster.send(pid, "SIGCONT")
      }
    },
    slowDown: async (isSlow) => {
      await query(superuserUrl, `alter system set commit_siblings = ${isSlow ? 0 : 5}`)
      await query(superuserUrl, `alter system set commit_delay = ${isSlow ? 100_000 : 0}`)
      await query(superuserUrl, "select pg_reload_conf()")
    },
    back: () => waitUntil("PostgreSQL is back", async () => (await ask("select 1")).length === 1),
    close
  }
}

const childrenOf = (pid: number): ReadonlyArray<number> =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number)
