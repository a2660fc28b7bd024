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
 * The call was not run, through no fault of its own: the sandbox is shutting down, cannot start processes, or too much was
 * waiting for too long. The work stays pending and is tried again.
 */
export class SandboxUnavailable extends Schema.TaggedError<SandboxUnavailable>()("SandboxUnavailable", {
  message: Schema.String
}) {}

export interface SandboxOptions {
  /** Calls that run at the same time, each in a process of its own. Default: one per core, from 3 to 6. */
  readonly children?: number
  /** Processes kept ready beyond those that are in use. Default 1. */
  readonly spares?: number
  /** Milliseconds without work after which a process has ended. Default 60 s. */
  readonly idleMs?: number
  /** Calls that may wait for a turn; a quarter of them from one team. Default 2,000. */
  readonly maxWaiting?: number
  /** Milliseconds that a call waits for a turn before it is `SandboxUnavailable`. Default 30 s. */
  readonly maxWaitMs?: number
  /** Bytes of memory of one process, above which it is killed. Default 512 MiB. Watched on Linux only. */
  readonly maxResidentBytes?: number
  /** The processes' priority, as the system counts it from 0, while they are not at quick calls: the higher, the more they give way to others. Default 10. */
  readonly niceness?: number
  /** Calls of new code that are compared with a fresh world before it runs in a sealed realm alone. Default 16. */
  readonly firstCalls?: number
}

/**
 * Runs the code of strangers, in isolates of their own by team and code, in processes without rights. Nothing is shared between teams, and
 * nothing is kept from one call to the next: a call has a fresh world, or it has its turn in a sealed realm, in which it can change nothing.
 *
 * **Isolation.** Sealed is thirty times as quick and almost the same. So each code is decided about (Decisions.ts): it runs sealed when
 * that compares equal to a fresh world over its first calls and a sample of the later ones; what fails there is run again in a
 * fresh one; and when it differs, it is pinned to fresh worlds, and its executions say why.
 *
 * **Batches.** Calls of quick code that wait go to a child together, and come back together; each has its own time, memory, log and error.
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
 * What it returns: an object; members that it lacks are the request's. `query` may be a string or an object and counts if it
 * differs from the request's, else `parsed_query` counts. Header names are lowered; values become strings, null leaves a
 * header out. Time is UTC. The limits are in `CallLimits.ts`.
 *
 * **Fairness.** Teams take turns, and within a team its codes; a team has at most half of the children. Code whose calls were
 * slow (a moving mean above 50 ms, waits for the processor left out) shares half of them; with code that is new here, all but
 * one, and of its own a team keeps one for its quick code. A process at quick calls has the gateway's own priority; at what takes long, it
 * gives way to everybody.
 *
 * **Force.** Code that does not stop when it is told to, or that takes more memory than a process may have, costs its process,
 * and ends as TIMEOUT or MEMORY_LIMIT. With the third time it is not run but answered so at once, for 10 s, and for twice as long with
 * each further time, up to an hour (per team and code hash; forgotten after two hours without). A process that dies by itself or
 * from outside fails nothing at first: the call runs again, and only when it crashes again, or is killed for the sixth time,
 * it was the call's own doing, as MEMORY_LIMIT.
 */
export class Sandbox extends Context.Service<
  Sandbox,
  {
    /** Never fails for what the code does: that is in the `Execution`. Interrupted while it waits, it is not run. */
    readonly run: (call: Call) => Effect.Effect<Execution, SandboxUnavailable>
    /** Compiles, and runs nothing: what is wrong with the code's syntax, or null. */
    readonly check: (code: string) => Effect.Effect<SyntaxProblem | null, SandboxUnavailable>
    /** The processes that run now, spares and starting ones included. */
    readonly pids: () => ReadonlyArray<number>
  }
>()("@tidegate/sandbox/Sandbox") {
  /**
   * Processes start when they are needed: the first with the first call, which waits for it; the next ones while that one works, as many as
   * have work at once and the spares. They end when they have had none for `idleMs`, and with the layer's scope they
   * are killed; calls are then `SandboxUnavailable`.
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
