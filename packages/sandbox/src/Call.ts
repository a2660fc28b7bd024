import type { Schema } from "effect"
import type { MessageHead, Values } from "@tidegate/model/Message"

/** The request that a handler receives, and the shape of what it returns. */
export interface TransformRequest extends MessageHead {
  /** The JSON value, or the text of a body that is not JSON. */
  readonly body: Schema.Json
  readonly parsed_query: Values
}

/** Which kind of V8 context code may run in: see `Sandbox`. */
export type Isolation = "sealed" | "fresh"

/** One run of one team's code over one request. */
export interface Call {
  readonly teamId: string
  /** At most 1 MiB; longer code is SYNTAX_ERROR. */
  readonly code: string
  /** Two calls have the same hash only if their code is equal: warm isolates are looked up by team and hash. */
  readonly codeHash: string
  /** `fresh`: the call never runs in a reused context, because the author chose that or because the code behaved differently there. */
  readonly isolation: Isolation
  /** The code is loaded, which registers its handler, but the handler is not called: the request is returned unchanged. Runs in a fresh context. */
  readonly isLoadedOnly?: boolean
  /** Available to the code as `process.env` and `context.env`. */
  readonly env: Readonly<Record<string, string>>
  readonly request: TransformRequest
  /**
   * Returns the request's body as JSON text that the code may parse itself; then `request.body` is not read. It may be no JSON: then the
   * code gets it as text. Null, or absent: `request.body` is written as JSON, without the numbers that JavaScript cannot hold.
   */
  readonly bodyText?: () => string | null
  readonly context: {
    readonly connection_id: string | null
    readonly source_id: string | null
    readonly destination_id: string | null
    readonly request_id: string | null
    readonly team_id: string | null
    readonly timestamp: string | null
  }
}

export type ExecutionErrorCode =
  | "SYNTAX_ERROR"
  | "RUNTIME_ERROR"
  | "TIMEOUT"
  | "MEMORY_LIMIT"
  | "OUTPUT_TOO_LARGE"
  | "INVALID_OUTPUT"
  | "NO_HANDLER"
  | "ASYNC_NOT_SUPPORTED"

export interface ExecutionError {
  readonly code: ExecutionErrorCode
  readonly name: string
  readonly message: string
  /** Line of the team's code, from 1; null if unknown. */
  readonly line: number | null
}

export type LogType = "debug" | "log" | "info" | "warn" | "error"

export interface LogLine {
  readonly type: LogType
  readonly message: string
}

export type LogLevel = "debug" | "info" | "warn" | "error" | "fatal"

/** The result of a call. Either `request` or `error` is null. */
export interface Execution {
  readonly request: TransformRequest | null
  /** The returned body as JSON; null if it is the body that was passed in. `isText`: the body is a text, or is forwarded as one. */
  readonly written: { readonly json: string; readonly isText: boolean } | null
  readonly error: ExecutionError | null
  readonly logs: ReadonlyArray<LogLine>
  /** The level of the most severe log line (`log` counts as `info`). Without lines it is `info`; with an error it is `fatal`. */
  readonly logLevel: LogLevel
  /** Warnings for the author of the code, for example that log lines were dropped. */
  readonly warnings: ReadonlyArray<string>
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly finishedAt: number
  /** Milliseconds with a fraction; time spent in the queue is not included. */
  readonly durationMs: number
  /** Bytes by which the call grew the heap; 0 if garbage was collected meanwhile or if it cannot be measured. */
  readonly memoryBytes: number
  /** Why the code must not run in a reused context, if it behaved differently there. The caller stores it with the code. */
  readonly pinned: string | null
}

export interface SyntaxProblem {
  readonly message: string
  /** Line from 1; null if unknown. */
  readonly line: number | null
}
