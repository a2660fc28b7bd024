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

/** For code that was stopped by force. */
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

/** An execution without a result, now ended. */
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

/**
 * A returned body, and a remark about it: one that costs too much to parse stays the JSON text that it is, as one that was
 * received does.
 */
const bodyOf = (json: string): { readonly body: Schema.Json; readonly remarks: ReadonlyArray<string> } => {
  const parsed = parseJson(json)
  if (parsed.kind === "json") return { body: parsed.value as Schema.Json, remarks: [] }
  return {
    body: json,
    remarks: parsed.kind === "invalid" ? [] : [`the body ${excessIn(parsed.kind)}: it goes on as JSON text`]
  }
}

/** In a shorter body is nothing to remark: it has not as many values (characters). */
export const parsedAtOnce = 64 * 1024

interface Returned {
  readonly request: TransformRequest
  readonly written: Execution["written"]
  readonly remarks: ReadonlyArray<string>
}

/** What a handler has returned, with the body that came as JSON text. Most are handed on as that: it is parsed when somebody asks for it. */
const returnedAs = (members: Omit<TransformRequest, "body">, json: string): Returned => {
  if (json.length > parsedAtOnce) {
    const { body, remarks } = bodyOf(json)
    return { request: { ...members, body }, written: { json, isText: typeof body === "string" }, remarks }
  }
  let parsed: { readonly body: Schema.Json } | undefined
  const request = {
    ...members,
    get body() {
      return (parsed ??= bodyOf(json)).body
    }
  }
  return { request, written: { json, isText: json.startsWith('"') }, remarks: [] }
}

const nothing = { request: null, written: null, remarks: [] }

/** What a child's answer comes to; `pinned`: what it showed of the code. `isRounded`: it was given other numbers than the body has. */
export const executionOf = (
  call: Call,
  { body, ran }: Result,
  pinned: string | null,
  isRounded: boolean
): Execution => {
  const { error, request, logs, warnings, startedAt, durationMs, memoryBytes } = ran
  const returned =
    request === null
      ? nothing
      : ran.bodyUnchanged
        ? { ...nothing, request: { ...request, body: call.request.body } }
        : returnedAs(request, isRounded ? withDigits(call.request.body, body) : body)
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
