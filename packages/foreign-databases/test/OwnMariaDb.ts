import { Effect, type Scope } from "effect"
import { execFile, execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"
import { auth } from "./Brokering.ts"
import { fixture, freePort, type OwnProgram, ownProgram } from "./OwnBroker.ts"

/** The program of a real MariaDB, where one is installed (`apt-get install mariadb-server`). */
export const program = ["/usr/sbin/mariadbd"].find(existsSync)

/** Somebody else's MariaDB, which speaks TLS too. The user `writer` may do nothing but insert into tables of `shop`. */
export interface OwnMariaDb extends OwnProgram {
  readonly port: number
  /** Any statements, as the owner: the rows of the last one, without their names. */
  readonly owner: (statements: string) => Promise<string>
}

export const ownMariaDb: Effect.Effect<OwnMariaDb, never, Scope.Scope> = Effect.gen(function* () {
  const home = yield* temporaryFolder
  const port = yield* freePort
  const data = join(home, "data")
  const socket = join(home, "socket")
  // As the superuser it does not start without being told that it may.
  const user = process.getuid?.() === 0 ? ["--user=root"] : []
  execFileSync(
    "/usr/bin/mariadb-install-db",
    ["--no-defaults", `--datadir=${data}`, "--auth-root-authentication-method=normal", "--skip-test-db", ...user],
    { stdio: "ignore" }
  )
  const server = yield* ownProgram({
    program: program!,
    args: [
      "--no-defaults",
      `--datadir=${data}`,
      `--socket=${socket}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      `--pid-file=${join(home, "pid")}`,
      `--ssl-cert=${fixture("valid")}`,
      `--ssl-key=${fixture("key")}`,
      "--innodb-buffer-pool-size=32M",
      "--plugin-load-add=auth_ed25519",
      // Not what the gateway relies on.
      "--autocommit=0",
      "--sql-mode=",
      ...user
    ],
    home,
    ready: "ready for connections"
  })
  const owner = (statements: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const client = execFile(
        "/usr/bin/mariadb",
        ["--no-defaults", `--socket=${socket}`, "--user=root", "--skip-column-names", "--batch", "--raw"],
        { maxBuffer: 64 * 1024 * 1024 },
        (error, out) => (error === null ? resolve(out.trim()) : reject(error))
      )
      client.stdin!.end(`set autocommit = 1; ${statements}`)
    })
  yield* Effect.promise(() =>
    owner(`
      create database shop character set utf8mb4;
      create user '${auth.username}'@'%' identified by '${auth.password}';
      create user 'other'@'%' identified via ed25519 using password('${auth.password}');
      grant insert on shop.* to '${auth.username}'@'%'`)
  )
  return { port, ...server, owner }
})
