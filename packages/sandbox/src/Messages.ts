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
      readonly memoryBytes: number
    }
