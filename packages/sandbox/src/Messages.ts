import type { Schema } from "effect"
import type { ExecutionError, LogLine, SyntaxProblem, TransformRequest } from "./Call.ts"

/**
 * How a call runs. `fresh`: in a context of its own. `sealed`: in a frozen context that all calls of the code share.
 * `compared`: in a fresh context, whose result counts, and then in the sealed one with the same clock and randomness, to compare the results.
 */
export type Path = "fresh" | "sealed" | "compared"

/** The first text of a frame to a child. */
export type Order =
  | {
      /** A batch of calls of one code. The frame has two texts for each: its `Input`, and the body of its request. */
      readonly type: "run"
      /** Key of the code. Its text is in `code`, unless the child has it already. */
      readonly key: string
      readonly code?: string
      /** Keys of code that the child may drop. */
      readonly forget?: ReadonlyArray<string>
      readonly wallMs: number
      readonly paths: ReadonlyArray<Path>
    }
  | { readonly type: "check"; readonly code: string }

export interface Input {
  readonly request: Omit<TransformRequest, "body">
  readonly context: Readonly<Record<string, unknown>>
  readonly isLoadedOnly?: boolean
  /** The body is the one that was received, and may be no JSON. */
  readonly isReceived?: boolean
}

/** Result of a comparison. `noisy`: two fresh runs differ, too, so the comparison proves nothing. */
export type Verdict =
  | { readonly kind: "equal" }
  | { readonly kind: "noisy" }
  | { readonly kind: "differs"; readonly reason: string }

/** Result of one call of a batch. */
export interface Ran {
  readonly error: ExecutionError | null
  /** Null if there is an error, or if it `isUnchanged`. */
  readonly request: Omit<TransformRequest, "body"> | null
  /** The request without its body is the one that was passed in. */
  readonly isUnchanged: boolean
  /** The body is the one that was passed in; otherwise it is sent as a separate text. */
  readonly bodyUnchanged: boolean
  readonly logs: ReadonlyArray<LogLine>
  readonly warnings: ReadonlyArray<string>
  readonly startedAt: number
  readonly durationMs: number
  /** Processor time of the isolate during the call: much less than `durationMs` on a busy machine. */
  readonly cpuMs: number
  readonly memoryBytes: number
  /** The call ran in the reused context. */
  readonly isSealed: boolean
  /** Null if nothing was compared. */
  readonly verdict: Verdict | null
}

/** The first text of a frame from a child. */
export type Answer =
  | { readonly type: "ready" }
  | { readonly type: "checked"; readonly problem: SyntaxProblem | null }
  /**
   * Two texts follow for each call that ran, in order: its `Ran`, and its body. If the batch took too long or its results grew too large,
   * its last calls did not run. `processMs`: processor time of the whole process for them, including preparation and comparison.
   */
  | { readonly type: "ran"; readonly processMs: number }

/**
 * Whether a value nests deeper than `levels`. It works level by level without recursion, because the depth at which a stack overflows
 * varies. It is called before JSON is written on the gateway's event loop: at a depth of three million, which six megabytes of brackets reach,
 * V8 takes nine seconds.
 */
export const isDeeper = (value: Schema.Json, levels: number): boolean => {
  const isNested = (item: unknown): item is object => typeof item === "object" && item !== null
  let level: ReadonlyArray<object> = isNested(value) ? [value] : []
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === levels) return true
    const below: Array<object> = []
    for (const item of level) for (const inner of Object.values(item)) if (isNested(inner)) below.push(inner)
    level = below
  }
  return false
}
