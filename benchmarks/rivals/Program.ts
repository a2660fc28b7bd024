import { spawn } from "node:child_process"
import { closeSync, openSync } from "node:fs"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"

export class ProgramError extends Data.TaggedError("ProgramError")<{ readonly message: string }> {}

export interface Program {
  readonly pid: number
}

const stopMillis = 10_000

/** Runs a program until the scope closes, and waits until `ready` answers 2xx to a GET. */
export const run = Effect.fnUntraced(function* (options: {
  readonly file: string
  readonly args?: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly log: string
  readonly ready: string
  readonly patienceMillis?: number
}): Effect.fn.Return<Program, ProgramError, Scope.Scope> {
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const log = openSync(options.log, "a")
      const started = spawn(options.file, options.args ?? [], {
        stdio: ["ignore", log, log],
        env: { ...process.env, ...options.env },
        ...(options.cwd === undefined ? {} : { cwd: options.cwd })
      })
      closeSync(log)
      return started
    }),
    (child) =>
      Effect.callback<void>((done) => {
        if (child.exitCode !== null || child.signalCode !== null) return done(Effect.void)
        const killer = setTimeout(() => child.kill("SIGKILL"), stopMillis)
        child.once("exit", () => {
          clearTimeout(killer)
          done(Effect.void)
        })
        child.kill("SIGTERM")
      })
  )
  yield* Effect.tryPromise({
    try: async () => {
      const answer = await fetch(options.ready)
      await answer.arrayBuffer()
      if (!answer.ok) throw new Error(String(answer.status))
    },
    catch: (cause) =>
      new ProgramError({ message: `${options.file} did not become ready (${String(cause)}); see ${options.log}` })
  }).pipe(
    Effect.retry({
      schedule: Schedule.spaced("100 millis"),
      times: (options.patienceMillis ?? 60_000) / 100,
      while: () => child.exitCode === null
    })
  )
  return { pid: child.pid! }
})

/** A call that has to succeed; its answer. */
export const post = (url: string, body: object, headers: Readonly<Record<string, string>> = {}) =>
  Effect.tryPromise({
    try: async () => {
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body)
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${answer.status} ${text.slice(0, 500)}`)
      return JSON.parse(text) as unknown
    },
    catch: (cause) => new ProgramError({ message: `POST ${url}: ${String(cause)}` })
  })
