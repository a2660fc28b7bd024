/**
 * Runs parts of the benchmark in separate processes, so that the CPU of each is known: a forked TypeScript module that answers
 * typed commands over the IPC channel.
 */
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** The commands of a worker. Inputs and results have to be JSON. */
export type Commands = Readonly<Record<string, (input: never) => unknown>>

interface Call {
  readonly id: number
  readonly command: string
  readonly input: unknown
}

interface Reply {
  readonly id: number
  readonly value?: unknown
  readonly error?: string
}

/**
 * In the child: answers the parent's calls, and exits when the parent goes away, so that a killed benchmark leaves no process
 * behind.
 */
export const serve = (commands: Commands): void => {
  const handlers = new Map<string, (input: unknown) => unknown>(
    Object.entries(commands).map(([name, handler]) => [name, handler as (input: unknown) => unknown])
  )
  const reply = (message: Reply) => process.send?.(message)
  process.on("message", (call: Call) => {
    const handler = handlers.get(call.command)
    void Promise.resolve()
      .then(() => {
        if (handler === undefined) throw new Error(`unknown command ${call.command}`)
        return handler(call.input)
      })
      .then(
        (value) => reply({ id: call.id, value }),
        (error: unknown) =>
          reply({ id: call.id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
      )
  })
  process.on("disconnect", () => process.exit(0))
}

/** A worker could not be started, has died, or refused a command. */
export class WorkerError extends Data.TaggedError("WorkerError")<{
  readonly worker: string
  readonly message: string
}> {}

/** How long a worker may take to end before it is killed. A CPU profile is written in this time. */
const STOP_MILLIS = 10_000

/** In the parent: a running worker. */
export interface Worker<C extends Commands> {
  readonly pid: number
  /** Sends one command and waits for its answer; fails if the worker dies. */
  readonly call: <Name extends keyof C & string>(
    command: Name,
    input: Parameters<C[Name]>[0]
  ) => Effect.Effect<Awaited<ReturnType<C[Name]>>, WorkerError>
}

/**
 * Starts a module of this folder as a worker. Closing the scope ends it, and waits until it has ended. `execArgv`: flags for its
 * Node process.
 */
export const start = <C extends Commands>(
  module: string,
  execArgv: ReadonlyArray<string> = []
): Effect.Effect<Worker<C>, WorkerError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<{ readonly worker: Worker<C>; readonly stop: Effect.Effect<void> }, WorkerError>((resume) => {
      const child = fork(fileURLToPath(new URL(module, import.meta.url)), { execArgv: [...execArgv] })
      const waiting = new Map<number, (reply: Reply) => void>()
      let nextId = 0
      let gone = false
      const fail = (message: string) => new WorkerError({ worker: module, message })
      child.on("message", (reply: Reply) => {
        const resolve = waiting.get(reply.id)
        waiting.delete(reply.id)
        resolve?.(reply)
      })
      child.once("error", (error) => resume(Effect.fail(fail(error.message))))
      child.once("exit", (code, signal) => {
        gone = true
        for (const [id, resolve] of waiting) resolve({ id, error: `exited with ${signal ?? code}` })
        waiting.clear()
      })
      const call: Worker<C>["call"] = (command, input) =>
        Effect.callback((done) => {
          if (gone) return done(Effect.fail(fail("is not running")))
          const id = nextId++
          waiting.set(id, (reply) =>
            done(
              reply.error === undefined
                ? Effect.succeed(reply.value as Awaited<ReturnType<C[typeof command]>>)
                : Effect.fail(fail(`${command}: ${reply.error}`))
            )
          )
          child.send({ id, command, input } satisfies Call)
        })
      const stop = Effect.callback<void>((done) => {
        if (gone) return done(Effect.void)
        const killer = setTimeout(() => child.kill("SIGKILL"), STOP_MILLIS)
        child.once("exit", () => {
          clearTimeout(killer)
          done(Effect.void)
        })
        child.disconnect()
      })
      child.once("spawn", () => resume(Effect.succeed({ worker: { pid: child.pid!, call }, stop })))
    }),
    ({ stop }) => stop
  ).pipe(Effect.map(({ worker }) => worker))
