import { Effect, Exit, Redacted, Scope } from "effect"
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
  /** Runs one statement on a connection of its own, so that no fault of an earlier moment stays with it. */
  readonly query: (statement: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<Row>>
  /** SIGKILL to the server's main process. */
  readonly kill: () => void
  /** Completes when the server answers, whoever has brought it back. */
  readonly back: () => Promise<number>
  readonly close: () => Promise<void>
}

/** A server of the harness's own for processes that are given a DATABASE_URL. When it is killed, it is started again. */
export const standalone = async (folder: string): Promise<Postgres> => {
  const scope = Scope.makeUnsafe()
  const home = await Effect.runPromise(Home.open(join(folder, "postgres")))
  const server = await Effect.runPromise(start({ home: home.path }).pipe(Scope.provide(scope)))
  return postgres(Redacted.value(server.url), home, () => Effect.runPromise(Scope.close(scope, Exit.void)))
}

/** The server that a gateway without DATABASE_URL keeps in its home folder. It is the gateway's to bring back. */
export const embedded = async (gatewayHome: string): Promise<Postgres> => {
  const home = await Effect.runPromise(Home.open(join(gatewayHome, "postgres")))
  const password = await Effect.runPromise(Home.password(home))
  const { url } = accessTo(Home.rememberedPort(home)!, password)
  return postgres(Redacted.value(url), home, () => Promise.resolve())
}

const postgres = (url: string, home: Home.Home, close: () => Promise<void>): Postgres => {
  const ask: Postgres["query"] = (statement, parameters) => query(url, statement, parameters)
  return {
    url,
    query: ask,
    kill: () => {
      const server = Postmaster.find(home.data)
      if (server !== undefined) Postmaster.send(server.pid, "SIGKILL")
    },
    back: () =>
      waitUntil("PostgreSQL is back", async () => (await ask("select 1")).length === 1, { patienceMs: 30_000 }),
    close
  }
}
