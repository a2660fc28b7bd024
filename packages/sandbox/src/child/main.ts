/**
 * A child of the pool: takes orders from its standard input, one after the other, and answers on its standard output. It
 * ends with its input, so that no child outlives the pool, however that ends. It is started without rights to files,
 * network, processes and workers (ChildProcess.ts).
 */
import { writeSync } from "node:fs"
import type { ExecutionError, ExecutionErrorCode } from "../Call.ts"
import { encodeFrame, makeFrameReader } from "../Frame.ts"
import { callLimits } from "../CallLimits.ts"
import type { Answer, Input, Order } from "../Messages.ts"
import { bodyFault, InvalidEnvelope, isTooMuch, settleMembers } from "./Envelope.ts"
import type { Outcome } from "./Guest.ts"
import { cut } from "./Host.ts"
import { check, warmUp } from "./Warm.ts"
import type { Ended, Warm } from "./Warm.ts"

/** Heap of all warm isolates together; beyond it those that waited longest for a call go. */
const warmBytes = Number(process.argv[2])
/** Heap of one; less when there are many, so that more of them stay warm. A fresh one has 1.2 MiB, each call leaves 0.2. */
const isolateBytes = 12 * 1_048_576
const warmIdleMs = 120_000

const codes = new Map<string, string>()
/** In the order of their last use. */
const warm = new Map<string, { readonly isolate: Warm; usedAt: number; bytes: number }>()

const answer = (answer: Answer, body = ""): void => {
  const frame = encodeFrame([JSON.stringify(answer), "", body])
  for (let at = 0; at < frame.length;) at += writeSync(1, frame, at)
}

const errorCodes: ReadonlySet<string> = new Set<ExecutionErrorCode>([
  "RUNTIME_ERROR",
  "OUTPUT_TOO_LARGE",
  "INVALID_OUTPUT",
  "NO_HANDLER",
  "ASYNC_NOT_SUPPORTED"
])
const isErrorCode = (code: string | undefined): code is ExecutionErrorCode => code !== undefined && errorCodes.has(code)

const failed = (
  code: ExecutionErrorCode,
  name: string,
  message: string,
  line: number | null = null
): ExecutionError => ({
  code,
  name: cut(name.toWellFormed(), 256),
  message: cut(message.toWellFormed(), callLimits.logLineBytes),
  line
})
const tooLarge = failed(
  "OUTPUT_TOO_LARGE",
  "RangeError",
  `the returned request is larger than ${callLimits.outputBytes} bytes`
)

type Settled = Pick<Extract<Answer, { type: "ran" }>, "error" | "request" | "bodyUnchanged"> & { readonly body: string }

const unsettled = (error: ExecutionError): Settled => ({ error, request: null, bodyUnchanged: false, body: "" })

const settleOutcome = (outcome: Outcome, input: string, body: string): Settled => {
  // Texts from a stranger, whatever the guest was meant to return.
  const [code, second = "", third = "", line = ""] = outcome
  if (code === "OUTPUT_TOO_LARGE") return unsettled(tooLarge)
  if (isErrorCode(code))
    return unsettled(failed(code, second, third, /^[1-9]\d{0,6}$/.test(line) ? Number(line) : null))
  if (Buffer.byteLength(second) + Buffer.byteLength(third) > callLimits.outputBytes) return unsettled(tooLarge)
  const { request }: Input = JSON.parse(input)
  const bodyUnchanged = third === "" || third === body
  const fault = bodyUnchanged ? null : bodyFault(third)
  if (fault !== null) return unsettled(failed("INVALID_OUTPUT", "RangeError", fault))
  try {
    return { error: null, request: settleMembers(request, second), bodyUnchanged, body: bodyUnchanged ? "" : third }
  } catch (error) {
    const message = error instanceof InvalidEnvelope ? error.message : "the returned request is not a JSON value"
    return unsettled(failed("INVALID_OUTPUT", "TypeError", message))
  }
}

const settle = (ended: Ended, input: string, body: string, wallMs: number): Settled => {
  if (ended.type === "outcome") return settleOutcome(ended.outcome, input, body)
  if (ended.type === "timeout")
    return unsettled(failed("TIMEOUT", "TimeoutError", `the code ran for more than ${wallMs} ms`))
  if (ended.type === "memory")
    return unsettled(failed("MEMORY_LIMIT", "RangeError", `the code used more than ${callLimits.memoryMib} MiB`))
  return unsettled(failed("RUNTIME_ERROR", ended.name, `unhandled rejection: ${ended.message}`))
}

const notRun = (error: ExecutionError): Answer => ({
  type: "ran",
  error,
  request: null,
  bodyUnchanged: false,
  logs: [],
  warnings: [],
  startedAt: Date.now(),
  durationMs: 0,
  cpuMs: 0,
  processMs: 0,
  memoryBytes: 0
})

const drop = (key: string): void => {
  warm.get(key)?.isolate.dispose()
  warm.delete(key)
}

/** Keeps the isolate and gets it ready for its next call, if that is worth it, and lets those go that had to wait longest. */
const keep = (key: string, isolate: Warm): void => {
  warm.delete(key)
  if (!isolate.renew(Math.min(isolateBytes, warmBytes / (warm.size + 1)))) {
    isolate.dispose()
    const code = codes.get(key)
    if (code === undefined) return
    const fresh = warmUp(code)
    if (!("run" in fresh)) return
    isolate = fresh
  }
  warm.set(key, { isolate, usedAt: Date.now(), bytes: isolate.heap().total })
  let total = 0
  for (const { bytes } of warm.values()) total += bytes
  for (const [oldest, { bytes }] of warm) {
    if (total <= warmBytes || oldest === key) break
    total -= bytes
    drop(oldest)
  }
}

const run = (order: Extract<Order, { type: "run" }>, input: string, body: string): void => {
  const processBefore = process.cpuUsage()
  for (const key of order.forget ?? []) {
    codes.delete(key)
    drop(key)
  }
  if (order.code !== undefined) codes.set(order.key, order.code)
  const code = codes.get(order.key)
  // The pool knows what it has sent: a child without the code is broken, and says so by ending.
  if (code === undefined) throw new Error("no code")
  if (Buffer.byteLength(code) > callLimits.codeBytes) {
    return answer(
      notRun(failed("SYNTAX_ERROR", "SyntaxError", `the code is longer than ${callLimits.codeBytes} bytes`))
    )
  }
  if (isTooMuch(body)) {
    const message = `the values of the request's body need more than ${callLimits.memoryMib} MiB`
    return answer(notRun(failed("MEMORY_LIMIT", "RangeError", message)))
  }
  const isolate = warm.get(order.key)?.isolate ?? warmUp(code)
  if (!("run" in isolate)) return answer(notRun(failed("SYNTAX_ERROR", "SyntaxError", isolate.message, isolate.line)))

  const usedBefore = isolate.heap().used
  const cpuBefore = isolate.cpuMs()
  const startedAt = Date.now()
  const start = performance.now()
  const ended = isolate.run(input, body, order.wallMs)
  const durationMs = performance.now() - start
  const cpuMs = Math.max(0, isolate.cpuMs() - cpuBefore)
  const memoryBytes = Math.max(0, isolate.heap().used - usedBefore)
  const { body: settledBody, ...settled } = settle(ended, input, body, order.wallMs)
  const { system, user } = process.cpuUsage(processBefore)
  const processMs = (system + user) / 1_000
  answer(
    { type: "ran", ...settled, ...isolate.host.takeLogs(), startedAt, durationMs, cpuMs, processMs, memoryBytes },
    settledBody
  )

  // An isolate that was stopped may have work left over: it is not used again.
  if (ended.type === "outcome") keep(order.key, isolate)
  else {
    isolate.dispose()
    warm.delete(order.key)
  }
}

const read = makeFrameReader(([control, input, body]) => {
  const order: Order = JSON.parse(control)
  if (order.type === "run") run(order, input, body)
  else answer({ type: "checked", problem: check(order.code) })
})

setInterval(() => {
  const old = Date.now() - warmIdleMs
  for (const [key, { usedAt }] of warm) if (usedAt < old) drop(key)
}, 30_000).unref()

// The keyboard's interrupt goes to all processes of the terminal; when the pool ends is for the pool to say.
process.on("SIGINT", () => {})
process.stdin.on("data", read)
process.stdin.on("end", () => process.exit(0))
answer({ type: "ready" })
