import { excessIn, parseJson } from "@tidegate/json/JsonText"
import type { Schema } from "effect"
import type { Call, Execution, ExecutionError, LogLevel, LogLine, TransformRequest } from "./Call.ts"
import { callLimits } from "./CallLimits.ts"
import type { Result } from "./ChildProcess.ts"
import { withDigits } from "./Digits.ts"
import type { Offence } from "./Strikes.ts"

const levels: Readonly<Record<LogLine["type"], number>> = { debug: 0, log: 1, info: 1, warn: 2, error: 3 }
const levelNames = ["debug", "info", "warn", "error"] as const

const logLevel = (logs: ReadonlyArray<LogLine>, error: ExecutionError | null): LogLevel => {
  if (error !== null) return "fatal"
  if (logs.length === 0) return "info"
  return levelNames[Math.max(...logs.map(({ type }) => levels[type]))] ?? "info"
}

/** The error of code that was killed. */
export const killedError = (offence: Offence): ExecutionError =>
  offence === "TIMEOUT"
    ? {
        code: offence,
        name: "TimeoutError",
        message: `the code ran for more than ${callLimits.ms} ms and could not be stopped`,
        line: null
      }
    : {
        code: offence,
        name: "RangeError",
        message: `the code used more than ${callLimits.memoryMib} MiB and could not be stopped`,
        line: null
      }

/** An execution that failed without a result and ends now. */
export const withoutResult = (error: ExecutionError, warnings: ReadonlyArray<string>, startedAt: number): Execution => {
  const finishedAt = Date.now()
  return {
    request: null,
    written: null,
    error,
    logs: [],
    logLevel: "fatal",
    warnings,
    startedAt,
    finishedAt,
    durationMs: finishedAt - startedAt,
    memoryBytes: 0,
    pinned: null
  }
}

/** A returned body, with remarks. A body that costs too much to parse stays JSON text, as a received one does. */
const bodyOf = (json: string): { readonly body: Schema.Json; readonly remarks: ReadonlyArray<string> } => {
  const parsed = parseJson(json)
  if (parsed.kind === "json") return { body: parsed.value as Schema.Json, remarks: [] }
  return {
    body: json,
    remarks: parsed.kind === "invalid" ? [] : [`the body ${excessIn(parsed.kind)}: it goes on as JSON text`]
  }
}

/** Characters. A shorter body cannot have too many values, so it needs no remark. */
export const parsedAtOnce = 64 * 1024

interface Returned {
  readonly request: TransformRequest
  readonly written: Execution["written"]
  readonly remarks: ReadonlyArray<string>
}

/** The returned request, with its body as JSON text. Most bodies are forwarded as text: they are parsed only when they are read. */
const returnedAs = (members: Omit<TransformRequest, "body">, json: string): Returned => {
  if (json.length > parsedAtOnce) {
    const { body, remarks } = bodyOf(json)
    return { request: withBody(members, () => body), written: { json, isText: typeof body === "string" }, remarks }
  }
  let parsed: { readonly body: Schema.Json } | undefined
  const request = withBody(members, () => (parsed ??= bodyOf(json)).body)
  return { request, written: { json, isText: json.startsWith('"') }, remarks: [] }
}

/** A request whose body is parsed when it is read. */
const withBody = (
  { headers, method, parsed_query, path, query }: Omit<TransformRequest, "body">,
  body: () => Schema.Json
): TransformRequest => ({
  headers,
  query,
  parsed_query,
  path,
  method,
  get body() {
    return body()
  }
})

const nothing = { request: null, written: null, remarks: [] }

/** Turns a child's answer into an execution. `pinned`: why the code is pinned, if it is. `isRounded`: the code received rounded numbers. */
export const executionOf = (
  call: Call,
  { body, ran }: Result,
  pinned: string | null,
  isRounded: boolean
): Execution => {
  const { error, logs, warnings, startedAt, durationMs, memoryBytes } = ran
  const members = ran.isUnchanged ? call.request : ran.request
  const returned =
    members === null
      ? nothing
      : ran.bodyUnchanged
        ? { ...nothing, request: ran.isUnchanged ? call.request : withBody(members, () => call.request.body) }
        : returnedAs(members, isRounded ? withDigits(call.request.body, body) : body)
  return {
    request: returned.request,
    written: returned.written,
    error,
    logs,
    logLevel: logLevel(logs, error),
    warnings: [...warnings, ...returned.remarks],
    startedAt,
    finishedAt: startedAt + Math.round(durationMs),
    durationMs,
    memoryBytes,
    pinned
  }
}
