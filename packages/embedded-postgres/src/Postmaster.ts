import { Deferred, Effect } from "effect"
import type { Scope } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { closeSync, openSync, readFileSync, readdirSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import type { Binaries } from "./Binaries.ts"
import { attempt, EmbeddedPostgresError } from "./EmbeddedPostgresError.ts"

/** A PostgreSQL program that this process started. */
export interface Program {
  readonly pid: number
  readonly isRunning: () => boolean
  /** Completes when the program has ended, with the reason: `"exit code 1"`, `"SIGKILL"`. */
  readonly ended: Effect.Effect<string>
}

/**
 * Runs a PostgreSQL program, appends its output to `log`, and stops it when the scope closes: first in an orderly way (connections
 * are closed, memory is written to disk), then with stronger signals. The data survives each of these.
 */
export const run = (
  binaries: Binaries,
  command: ReadonlyArray<string>,
  log: string
): Effect.Effect<Program, EmbeddedPostgresError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.flatMap(
      attempt(`The log ${log} cannot be written`, () => openSync(log, "a", 0o600)),
      (output) =>
        Effect.callback<Program, EmbeddedPostgresError>((resume) => {
          const [program = "", ...args] = [...binaries.prefix, ...command]
          const child = spawn(program, args, { env: binaries.env, stdio: ["ignore", output, output] })
          closeSync(output)
          const ended = Deferred.makeUnsafe<string>()
          child.once("exit", (code, signal) => {
            Deferred.doneUnsafe(ended, Effect.succeed(signal ?? `exit code ${code}`))
          })
          child.on("error", (cause) =>
            resume(Effect.fail(new EmbeddedPostgresError({ message: `${program} cannot be run`, cause })))
          )
          const { pid } = child
          const isRunning = () => child.exitCode === null && child.signalCode === null
          if (pid !== undefined) resume(Effect.succeed({ pid, isRunning, ended: Deferred.await(ended) }))
        })
    ),
    stop
  )

const stopSteps = [
  ["SIGINT", "10 seconds"],
  ["SIGQUIT", "6 seconds"],
  ["SIGKILL", "2 seconds"]
] as const

const stop = Effect.fnUntraced(function* (program: Program) {
  for (const [signal, patience] of stopSteps) {
    // After the program has ended, another program may have its process id.
    if (!program.isRunning()) return
    send(program.pid, signal)
    // Finalizers are uninterruptible, and the timeout needs interruption.
    yield* program.ended.pipe(Effect.interruptible, Effect.timeoutOption(patience))
  }
})

/** The information that a running server writes into its data directory. */
export interface Postmaster {
  readonly pid: number
  readonly port: number
  readonly ready: boolean
}

/** The command that serves the data directory. `isServing` recognises a server by it. */
export const serve = (binaries: Binaries, data: string, settings: Readonly<Record<string, string | number>>) => [
  binaries.postgres,
  "-D",
  data,
  ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`])
]

/** The file by which a server claims its data directory. */
export const pidFile = (data: string) => join(data, "postmaster.pid")

/** The server that runs on the data directory; `undefined` if there is none, even if a dead one has left its file. */
export const find = (data: string): Postmaster | undefined => {
  const lines = readText(pidFile(data))?.split("\n") ?? []
  const pid = Number(lines[0])
  if (!isServing(pid, data)) return undefined
  return { pid, port: Number(lines[3]), ready: lines[7]?.trim() === "ready" }
}

/**
 * Whether the process is a server on this data directory. The existence of the process id is not enough: after a restart of the
 * container another program may have it, and a zombie process keeps it, too (but has no command line).
 */
export const isServing = (pid: number, data: string): boolean =>
  Number.isInteger(pid) && pid > 0 && commandOf(pid).includes(`postgres -D ${data} -c `)

const commandOf = (pid: number): string =>
  process.platform === "linux"
    ? (readText(`/proc/${pid}/cmdline`)?.replaceAll("\0", " ") ?? "")
    : spawnSync("ps", ["-ww", "-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout

/**
 * Ends the sessions that a killed server left behind. They would end by themselves at their next wait, but a long
 * query blocks a new server until then, although its client is gone. All of them run in the data directory.
 */
export const endOrphans = (data: string): void => {
  if (process.platform !== "linux") return
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry)
    if (Number.isInteger(pid) && isSession(pid, data)) send(pid, "SIGKILL")
  }
}

const isSession = (pid: number, data: string) => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === data && commandOf(pid).startsWith("postgres: ")
  } catch {
    // The process has ended, or belongs to another user.
    return false
  }
}

const readText = (path: string) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Sends a signal. A process that no longer exists counts as success. */
export const send = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has ended.
  }
}
