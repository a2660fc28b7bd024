import { Effect, type Scope } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { chmodSync, existsSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { freePort } from "../../../test/support/Ports.ts"
import { temporaryFolder } from "../../../test/temporaryFolder.ts"

/** The program of a real PgBouncer, where one is installed (`apt-get install pgbouncer`). */
export const program = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer", "/opt/homebrew/bin/pgbouncer"].find(existsSync)

const isThere = (port: number) =>
  Effect.callback<boolean>((resume) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy()
      resume(Effect.succeed(true))
    }).on("error", () => resume(Effect.succeed(false)))
  })

const ended = (child: ChildProcess) =>
  Effect.callback<void>((resume) => {
    if (child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("exit", () => resume(Effect.void))
    child.kill("SIGKILL")
  })

export interface Pooler {
  readonly port: number
  /** Gives it so many connections of its own from now on. */
  readonly resize: (size: number) => void
}

/** A PgBouncer in front of the server at this port, with so many connections of its own for the user. `more`: lines of its settings. */
export const pooler = Effect.fnUntraced(function* (
  serverPort: number,
  database: string,
  user: { readonly username: string; readonly password: string },
  mode: string,
  size: number,
  more: ReadonlyArray<string> = []
): Effect.fn.Return<Pooler, never, Scope.Scope> {
  const folder = yield* temporaryFolder
  const port = yield* Effect.promise(freePort)
  const [settings, users] = [join(folder, "pgbouncer.ini"), join(folder, "users.txt")]
  const write = (poolSize: number): void =>
    writeFileSync(
      settings,
      [
        "[databases]",
        `${database} = host=127.0.0.1 port=${serverPort}`,
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        `listen_port = ${port}`,
        "unix_socket_dir =",
        "auth_type = scram-sha-256",
        `auth_file = ${users}`,
        `pool_mode = ${mode}`,
        `default_pool_size = ${poolSize}`,
        ...more,
        ""
      ].join("\n")
    )
  write(size)
  writeFileSync(users, `"${user.username}" "${user.password}"\n`)
  // It is not run by root, and then not by whom the files belong to.
  const as = process.getuid?.() === 0 ? ["-u", "nobody"] : []
  chmodSync(folder, 0o755)
  for (const file of [settings, users]) chmodSync(file, 0o644)
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn(program!, ["-q", ...as, settings], { stdio: "ignore" })),
    ended
  )
  while (!(yield* isThere(port))) yield* Effect.sleep("20 millis")
  return {
    port,
    resize: (poolSize) => {
      write(poolSize)
      child.kill("SIGHUP")
    }
  }
})
