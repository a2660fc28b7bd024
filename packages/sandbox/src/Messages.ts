import type { Schema } from "effect"
import type { ExecutionError, LogLine, SyntaxProblem, TransformRequest } from "./Call.ts"

/** The first text of a frame to a child. */
export type Order =
  | {
      readonly type: "run"
      /** Names the code, whose text `code` is unless the child has it already. */
      readonly key: string
      readonly code?: string
      /** Keys whose code is not needed any more. */
      readonly forget?: ReadonlyArray<string>
      readonly wallMs: number
    }
  | { readonly type: "check"; readonly code: string }

/** The second text of a frame to a child for a run; the third is the body of the request. */
export interface Input {
  readonly request: Omit<TransformRequest, "body">
  readonly context: Readonly<Record<string, unknown>>
}

/** The first text of a frame from a child. */
export type Answer =
  | { readonly type: "ready" }
  | { readonly type: "checked"; readonly problem: SyntaxProblem | null }
  | {
      readonly type: "ran"
      readonly error: ExecutionError | null
      /** Null with an error. The body is the third text of the frame, unless it is the one that was given. */
      readonly request: Omit<TransformRequest, "body"> | null
      readonly bodyUnchanged: boolean
      readonly logs: ReadonlyArray<LogLine>
      readonly warnings: ReadonlyArray<string>
      readonly startedAt: number
      readonly durationMs: number
      /** Of the isolate during the call: much less than `durationMs` when the machine had no time for it. */
      readonly cpuMs: number
      /** Of the whole process for this answer, preparing and settling included. */
      readonly processMs: number
      readonly memoryBytes: number
    }

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
