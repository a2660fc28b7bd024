import { Effect } from "effect"
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Ports from "../../../test/support/Ports.ts"

/** What suites need that start a real broker for themselves. */

export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../egress/test/fixtures/${name}.pem`, import.meta.url))

export const freePort = Effect.promise(Ports.freePort)

/** Ends a process with all that it has started. It has ended when nobody holds its output any more. */
export const ended = (child: ChildProcess | undefined) =>
  Effect.callback<void>((resume) => {
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    child.once("close", () => resume(Effect.void))
    process.kill(-child.pid, "SIGKILL")
  })

export interface OwnProgram {
  /** Ends it at once, as by `kill -9`. */
  readonly kill: Effect.Effect<void>
  readonly start: Effect.Effect<void>
  /** Stops it where it is: its connections stay, and nobody answers. */
  readonly freeze: Effect.Effect<void>
  /** Lets it go on after `freeze`. */
  readonly thaw: Effect.Effect<void>
}

/** Starts the program in this folder, until the scope closes. It runs when it has written `ready`. */
export const ownProgram = Effect.fnUntraced(function* (options: {
  readonly program: string
  readonly args: ReadonlyArray<string>
  readonly home: string
  readonly ready: string
  readonly env?: NodeJS.ProcessEnv
}) {
  const { args, env = {}, home, program, ready } = options
  let child: ChildProcess | undefined
  yield* Effect.addFinalizer(() => ended(child))
  const start = Effect.callback<void>((resume) => {
    child = spawn(program, args, {
      cwd: home,
      env: { PATH: process.env["PATH"], HOME: home, ...env },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true
    })
    let said = ""
    const read = (chunk: Buffer): void => {
      said += chunk.toString("latin1")
      // Before it is cut: on a busy machine a chunk has many lines, and that one may be the first of them.
      if (said.includes(ready)) resume(Effect.void)
      said = said.slice(-2_000)
    }
    child.stdout!.on("data", read)
    child.stderr!.on("data", read)
    child.once("exit", (code) => resume(Effect.die(new Error(`${program} has ended (${code}): ${said}`))))
  })
  yield* start
  const signal = (name: "SIGSTOP" | "SIGCONT") => Effect.sync(() => void process.kill(-child!.pid!, name))
  return {
    start,
    kill: Effect.suspend(() => ended(child)),
    freeze: signal("SIGSTOP"),
    thaw: signal("SIGCONT")
  } satisfies OwnProgram
})
