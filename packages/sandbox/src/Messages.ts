import type { Schema } from "effect"
import type { ExecutionError, LogLine, SyntaxProblem, TransformRequest } from "./Call.ts"

/**
 * How a call runs. `fresh`: in a context of its own. `sealed`: in one that is shared by the calls of its code, and sealed.
 * `compared`: fresh, whose result counts, and then sealed, with the same clock and randomness, to see whether it comes to the same.
 */
export type Path = "fresh" | "sealed" | "compared"

/** The first text of a frame to a child. */
export type Order =
  | {
      /** A batch of calls of one code. Each has two texts in the frame: its `Input`, and the body of its request. */
      readonly type: "run"
      /** Names the code, whose text `code` is unless the child has it already. */
      readonly key: string
      readonly code?: string
      /** Keys whose code is not needed any more. */
      readonly forget?: ReadonlyArray<string>
      readonly wallMs: number
      readonly paths: ReadonlyArray<Path>
    }
  | { readonly type: "check"; readonly code: string }

export interface Input {
  readonly request: Omit<TransformRequest, "body">
  readonly context: Readonly<Record<string, unknown>>
  readonly isLoadedOnly?: boolean
}

/** What a comparison of both paths came to. `noisy`: the code differs from itself, too, and nothing can be said. */
export type Verdict =
  | { readonly kind: "equal" }
  | { readonly kind: "noisy" }
  | { readonly kind: "differs"; readonly reason: string }

/** How one call of a batch ended. */
export interface Ran {
  readonly error: ExecutionError | null
  /** Null with an error. */
  readonly request: Omit<TransformRequest, "body"> | null
  /** The body is the one that was given; else it is a text of its own. */
  readonly bodyUnchanged: boolean
  readonly logs: ReadonlyArray<LogLine>
  readonly warnings: ReadonlyArray<string>
  readonly startedAt: number
  readonly durationMs: number
  /** Of the isolate during the call: much less than `durationMs` when the machine had no time for it. */
  readonly cpuMs: number
  /** Of the whole process for this answer, preparing, comparing and settling included. */
  readonly processMs: number
  readonly memoryBytes: number
  /** It ran in a sealed realm. */
  readonly isSealed: boolean
  /** Null when nothing was compared. */
  readonly verdict: Verdict | null
}

/** The first text of a frame from a child. */
export type Answer =
  | { readonly type: "ready" }
  | { readonly type: "checked"; readonly problem: SyntaxProblem | null }
  /**
   * Two texts follow for each call that was run, in order: its `Ran`, and its body. When the batch took too long or came to too much,
   * those at its end were not run.
   */
  | { readonly type: "ran" }

/**
 * Whether a value nests deeper than `levels`. It goes down level by level, not by calling itself, which a stack ends at some depth that
 * differs. Asked before JSON is written on the gateway's own loop: at a depth of three million, which six megabytes of brackets reach, V8
 * takes nine seconds.
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
