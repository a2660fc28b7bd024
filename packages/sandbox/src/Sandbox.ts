import { Context, Effect, Layer, Schema } from "effect"
import { availableParallelism } from "node:os"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { makePool } from "./Pool.ts"

export type {
  Call,
  Execution,
  ExecutionError,
  ExecutionErrorCode,
  Isolation,
  LogLevel,
  LogLine,
  SyntaxProblem,
  TransformRequest
} from "./Call.ts"

/**
 * The call was not run, for a reason outside of it: the sandbox is shutting down, cannot start processes, or the queue was full or too
 * slow. The work stays pending and is retried.
 */
export class SandboxUnavailable extends Schema.TaggedError<SandboxUnavailable>()("SandboxUnavailable", {
  message: Schema.String
}) {}

export interface SandboxOptions {
  /** Calls that run at the same time, each in a process of its own. Default: one per core, from 3 to 6. */
  readonly children?: number
  /** Processes kept ready beyond those that are in use. Default 1. */
  readonly spares?: number
  /** Milliseconds without work after which a process is ended. Default 60 s. */
  readonly idleMs?: number
  /** Calls that may wait in the queue; at most a quarter of them from one team. Default 2,000. */
  readonly maxWaiting?: number
  /** Milliseconds that a call may wait in the queue before it fails with `SandboxUnavailable`. Default 30 s. */
  readonly maxWaitMs?: number
  /** Bytes of memory of one process, above which it is killed. Default 512 MiB. Watched on Linux only. */
  readonly maxResidentBytes?: number
  /** The operating system's nice value of a process while it runs slow code: higher means lower priority. Default 10. */
  readonly niceness?: number
  /** Calls of new code that are compared with a fresh context before the code runs in a reused context alone. Default 16. */
  readonly firstCalls?: number
}

/**
 * Runs untrusted code in isolates, one for each team and code, in processes without rights. Teams share nothing, and one call leaves
 * nothing for the next: a call has a fresh context, or it runs in a reused context that is sealed (frozen), in which it can change nothing.
 *
 * **Isolation.** A sealed context is thirty times as fast as a fresh one and behaves almost the same. So each code is checked
 * (Decisions.ts): it runs sealed if it gives the same results as in a fresh context, for its first calls and for a sample of the later ones. A
 * call that fails sealed runs again in a fresh context. Code that differs is pinned to fresh contexts, and its executions say why.
 *
 * **Batches.** Waiting calls of fast code are sent to a child together and return together. Each has its own time, memory, log and error.
 *
 * The code calls `addHandler("transform", (request, context) => request)`; the last handler counts. It has the language
 * (no code from strings, no WebAssembly, no shared memory, no timers, no modules), `console`, `process.env`, `URL`,
 * `URLSearchParams`, `TextEncoder`, `TextDecoder`, `atob`, `btoa`, and `crypto`:
 *
 * - `crypto.hash(algorithm, data, encoding = "hex")`, `crypto.hmac(algorithm, key, data, encoding = "hex")`: text;
 *   algorithms md5, sha1, sha256, sha384, sha512; encodings hex, base64, base64url; data and keys are strings (UTF-8) or bytes.
 * - `crypto.timingSafeEqual(left, right)`: strings or bytes of any length.
 * - `crypto.randomUUID()`.
 *
 * The handler returns an object; members that it lacks are taken from the request. `query` may be a string or an object and is used if it
 * differs from the request's, else `parsed_query` is used. Header names are converted to lower case; values become strings, and null
 * removes a header. Time is UTC. The limits are in `CallLimits.ts`.
 *
 * **Fairness.** Teams take turns, and within a team its codes take turns; a team uses at most half of the children. Slow code (a moving mean
 * above 50 ms per call, without waits for the processor) uses at most half of the children. Slow and new code together use all children but
 * one. Within its own share, a team keeps one child for its fast code. A process has the gateway's priority during fast calls, and a low
 * priority during slow ones.
 *
 * **Kills.** Code that ignores its time limit, or that takes more memory than a process may have, costs its process; the call ends with
 * TIMEOUT or MEMORY_LIMIT. After the third time the code is refused with the same error for 10 s, and for twice as long after
 * each further time, up to an hour (per team and code hash; reset after two hours without a kill). When a process crashes or is killed from
 * outside, the call first runs again. Only after the second crash, or the sixth kill, does it fail, with MEMORY_LIMIT.
 */
export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** Never fails because of the code: its errors are in the `Execution`. A call that is interrupted in the queue does not run. */
    readonly run: (call: Call) => Effect.Effect<Execution, SandboxUnavailable>
    /**
     * The same without a fiber, for callers with many calls: it calls one of the two functions, possibly at once. `unavailable` gets the
     * message of a `SandboxUnavailable`. The returned function cancels: a call that waits does not run, and nothing is called back for it.
     */
    readonly start: (
      call: Call,
      done: (execution: Execution) => void,
      unavailable: (reason: string) => void
    ) => () => void
    /** Compiles the code without running it. Returns its syntax error, or null. */
    readonly check: (code: string) => Effect.Effect<SyntaxProblem | null, SandboxUnavailable>
    /** Ids of the running processes, including spares and those that are starting. */
    readonly pids: () => ReadonlyArray<number>
  }
>()("@tidegate/sandbox/Sandbox") {
  /**
   * Processes start on demand: the first with the first call, which waits for it; further ones while that one works, up to the number of
   * simultaneous calls plus the spares. They end after `idleMs` without work. When the layer's scope closes they are killed, and calls
   * then fail with `SandboxUnavailable`.
   */
  static readonly layer = (options: SandboxOptions = {}): Layer.Layer<Sandbox> =>
    Layer.effect(
      Sandbox,
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() =>
            makePool({
              children: options.children ?? Math.min(6, Math.max(3, availableParallelism())),
              spares: options.spares ?? 1,
              idleMs: options.idleMs ?? 60_000,
              maxWaiting: options.maxWaiting ?? 2_000,
              maxWaitMs: options.maxWaitMs ?? 30_000,
              maxResidentBytes: options.maxResidentBytes ?? 512 * 1_048_576,
              niceness: options.niceness ?? 10,
              firstCalls: options.firstCalls ?? 16
            })
          ),
          (pool) => Effect.promise(pool.close)
        ),
        (pool) => {
          const unavailable = (message: string) => Effect.fail(new SandboxUnavailable({ message }))
          return Sandbox.of({
            start: pool.run,
            run: (call) =>
              Effect.callback((resume) => {
                const cancel = pool.run(
                  call,
                  (execution) => resume(Effect.succeed(execution)),
                  (reason) => resume(unavailable(reason))
                )
                return Effect.sync(cancel)
              }),
            check: (code) =>
              Effect.callback((resume) => {
                const cancel = pool.check(
                  code,
                  (problem) => resume(Effect.succeed(problem)),
                  (reason) => resume(unavailable(reason))
                )
                return Effect.sync(cancel)
              }),
            pids: pool.pids
          })
        }
      )
    )
}
