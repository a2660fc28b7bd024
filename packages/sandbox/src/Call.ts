import type { Schema } from "effect"
import type { MessageHead, Values } from "@tidegate/model/Message"

/** What a handler is given and what it gives back. */
export interface TransformRequest extends MessageHead {
  /** The JSON value, or the text of a body that is not JSON. */
  readonly body: Schema.Json
  readonly parsed_query: Values
}

/** Where code may run: see `Sandbox`. */
export type Isolation = "sealed" | "fresh"

/** One run of one team's code over one request. */
export interface Call {
  readonly teamId: string
  /** At most 1 MiB; longer code is SYNTAX_ERROR. */
  readonly code: string
  /** Equal for equal code only: what is kept warm is looked up by team and hash. */
  readonly codeHash: string
  /** `fresh`: never in a sealed realm, because its author wants that or it was found to differ there. */
  readonly isolation: Isolation
  /** The code is loaded, which adds its handler, and is called for nothing: the request comes back as it is. In a fresh world. */
  readonly isLoadedOnly?: boolean
  /** `process.env` and `context.env` of the code. */
  readonly env: Readonly<Record<string, string>>
  readonly request: TransformRequest
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
  /** Of the team's code, from 1; null when it is not known. */
  readonly line: number | null
}

export type LogType = "debug" | "log" | "info" | "warn" | "error"

export interface LogLine {
  readonly type: LogType
  readonly message: string
}

export type LogLevel = "debug" | "info" | "warn" | "error" | "fatal"

/** How a call ended. Either `request` or `error` is null. */
export interface Execution {
  readonly request: TransformRequest | null
  /** The returned body as JSON, unless it is the one that was given. `isText`: it is a text, or goes on as one. */
  readonly written: { readonly json: string; readonly isText: boolean } | null
  readonly error: ExecutionError | null
  readonly logs: ReadonlyArray<LogLine>
  /** That of the highest line (`log` counts as `info`), `info` when there is none, `fatal` when there is an error. */
  readonly logLevel: LogLevel
  /** What was left out of the logs, and other remarks for the author of the code. */
  readonly warnings: ReadonlyArray<string>
  /** Milliseconds since 1970. */
  readonly startedAt: number
  readonly finishedAt: number
  /** Milliseconds with a fraction; waiting for a turn is not in it. */
  readonly durationMs: number
  /** Bytes by which the call grew the heap it ran on; 0 when it was collected meanwhile or cannot be known. */
  readonly memoryBytes: number
  /** Why the code does not run in a sealed realm, when it was found to differ there: to be remembered with it. */
  readonly pinned: string | null
}

export interface SyntaxProblem {
  readonly message: string
  /** From 1; null when it is not known. */
  readonly line: number | null
}
