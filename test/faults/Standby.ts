import { Effect, Redacted } from "effect"
import { appendFile, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { copyData, restoreData } from "../../packages/embedded-postgres/src/Backup.ts"
import * as Binaries from "../../packages/embedded-postgres/src/Binaries.ts"
import { start } from "../../packages/embedded-postgres/src/EmbeddedPostgres.ts"
import * as Home from "../../packages/embedded-postgres/src/Home.ts"
import * as Postmaster from "../../packages/embedded-postgres/src/Postmaster.ts"
import { DatabaseLink } from "../support/DatabaseLink.ts"
import { freePort } from "../support/Ports.ts"
import { query, type Row } from "../support/sql.ts"
import { waitUntil } from "../support/Waiting.ts"

/** A server, as its operator reaches it. */
export interface Server {
  /** For a gateway. */
  readonly url: string
  /** Runs a statement as a superuser. */
  readonly ask: (statement: string) => Promise<ReadonlyArray<Row>>
}

/** A primary server with a standby that follows it. */
export interface Pair {
  readonly primary: Server
  readonly standby: Server
  /** The connection by which the standby gets the log. A test can cut it. */
  readonly replication: DatabaseLink
  /** Commits wait from now on until the standby has them on its disk. */
  readonly synchronize: () => Promise<void>
}

const serverOf = (url: string, superuserUrl: string): Server => ({
  url,
  ask: (statement) => query(superuserUrl, statement)
})

const at = (url: string, port: number): string => {
  const moved = new URL(url)
  moved.port = String(port)
  return moved.href
}

/** Starts both in the folder; they end with the scope. The npm packages with the server have no `pg_basebackup`, so the gateway's own backup makes the copy. */
export const pair = Effect.fnUntraced(function* (folder: string) {
  const home = join(folder, "primary")
  const started = yield* start({ home, disposable: true })
  const [url, superuserUrl] = [Redacted.value(started.url), Redacted.value(started.superuserUrl)]
  const primary = serverOf(url, superuserUrl)
  const replication = yield* Effect.acquireRelease(
    Effect.promise(() => DatabaseLink.to(superuserUrl)),
    (link) => Effect.promise(() => link.close())
  )

  const copy = join(folder, "copy")
  yield* Effect.scoped(copyData(home, started.superuserUrl, copy))
  const standbyHome = yield* Home.open(join(folder, "standby"))
  yield* restoreData(copy, standbyHome.path)
  const { password, port: linkPort, username } = new URL(replication.url)
  yield* Effect.promise(async () => {
    await writeFile(join(standbyHome.data, "standby.signal"), "")
    await appendFile(
      join(standbyHome.data, "postgresql.auto.conf"),
      `primary_conninfo = 'host=127.0.0.1 port=${linkPort} user=${username} password=${password} application_name=standby'\n`
    )
  })
  const binaries = yield* Binaries.locate(standbyHome.path)
  if (binaries.owner !== undefined) yield* Home.giveData(standbyHome, binaries.owner)
  const port = yield* Effect.promise(freePort)
  yield* Postmaster.run(
    binaries,
    Postmaster.serve(binaries, standbyHome.data, {
      port,
      listen_addresses: "127.0.0.1",
      unix_socket_directories: "",
      max_connections: 200,
      shared_buffers: "128MB",
      fsync: "off",
      timezone: "UTC"
    }),
    standbyHome.log
  )
  const standby = serverOf(at(url, port), at(superuserUrl, port))
  const follows = () =>
    waitUntil("the standby follows", async () => {
      const rows = await primary.ask("select state from pg_stat_replication where application_name = 'standby'")
      return rows[0]?.["state"] === "streaming"
    })
  yield* Effect.promise(follows)
  return {
    primary,
    standby,
    replication,
    synchronize: async () => {
      await primary.ask("alter system set synchronous_standby_names = 'standby'")
      await primary.ask("select pg_reload_conf()")
      await waitUntil("commits wait for the standby", async () => {
        const [row] = await primary.ask("select sync_state from pg_stat_replication")
        return row?.["sync_state"] === "sync"
      })
    }
  } satisfies Pair
})
