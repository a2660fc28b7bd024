/**
 * The program of a child: reads orders from its standard input, one after the other, and answers on its standard output. It ends when its
 * input ends, so that no child outlives the pool, however the pool ends. It starts without rights to files, network, processes and
 * workers (ChildProcess.ts).
 */
import { writeSync } from "node:fs"
import type { SyntaxProblem } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import { encodeFrame, makeFrameReader } from "../Frame.ts"
import type { Answer, Order, Path, Ran, Verdict } from "../Messages.ts"
import { compare } from "./Compare.ts"
import { isTooMuch } from "./Envelope.ts"
import { type Measured, makeIsolates } from "./Isolates.ts"
import { failed, settle, type Settled, unsettled } from "./Settle.ts"
import { check } from "./Warm.ts"

const isolates = makeIsolates(Number(process.argv[2]))

/** Milliseconds, and size of the results, after which a batch ends early: the remaining calls are returned to the pool. */
const batchMs = 100
const batchCharacters = 16 * 1_048_576

const answer = (answer: Answer, texts: ReadonlyArray<string> = []): void => {
  const frame = encodeFrame([JSON.stringify(answer), ...texts])
  for (let at = 0; at < frame.length;) at += writeSync(1, frame, at)
}

const unused = { logs: [], warnings: [], durationMs: 0, cpuMs: 0, memoryBytes: 0 }

/** Why a call is refused, whatever its code is; null if it may run. */
const refusal = (key: string, body: string): Settled | null => {
  if (Buffer.byteLength(isolates.codeOf(key) ?? "") > callLimits.codeBytes)
    return unsettled(failed("SYNTAX_ERROR", "SyntaxError", `the code is longer than ${callLimits.codeBytes} bytes`))
  return isTooMuch(body)
    ? unsettled(
        failed(
          "MEMORY_LIMIT",
          "RangeError",
          `the values of the request's body need more than ${callLimits.memoryMib} MiB`
        )
      )
    : null
}

/** Runs a call along its path; uses a fresh context if a sealed one is unavailable or not worth it. */
const runAlong = (
  path: Path,
  key: string,
  input: string,
  body: string,
  wallMs: number
): { readonly ran: Measured | SyntaxProblem; readonly isSealed: boolean; readonly verdict: Verdict | null } => {
  const isSealing = path !== "fresh" && isolates.isSealing(key)
  if (isSealing && path === "compared") return { ...compare(isolates, key, input, body, wallMs), isSealed: false }
  const inputs = { seed: "", clock: "live" }
  if (isSealing) {
    const ran = isolates.run("sealed", key, input, body, wallMs, inputs)
    if ("ended" in ran) return { ran, isSealed: true, verdict: null }
  }
  return { ran: isolates.run("fresh", key, input, body, wallMs, inputs), isSealed: false, verdict: null }
}

/** Runs one call of a batch and returns its texts for the answer. */
const run = (
  path: Path,
  key: string,
  input: string,
  body: string,
  wallMs: number
): readonly [ran: string, body: string] => {
  const startedAt = Date.now()
  const refused = refusal(key, body)
  const { isSealed, ran, verdict } =
    refused === null ? runAlong(path, key, input, body, wallMs) : { ran: null, isSealed: false, verdict: null }
  const settled =
    refused ??
    (ran !== null && "ended" in ran
      ? settle(ran.ended, input, wallMs)
      : unsettled(failed("SYNTAX_ERROR", "SyntaxError", ran?.message ?? "", ran?.line)))
  const { body: returned, ...rest } = settled
  const { cpuMs, durationMs, logs, memoryBytes, warnings } = ran !== null && "ended" in ran ? ran : unused
  const summary: Ran = {
    ...rest,
    logs,
    warnings,
    startedAt,
    durationMs,
    cpuMs,
    memoryBytes,
    isSealed,
    verdict
  }
  return [JSON.stringify(summary), returned]
}

const runBatch = (
  { code, forget, key, paths, wallMs }: Extract<Order, { type: "run" }>,
  texts: ReadonlyArray<string>
) => {
  for (const old of forget ?? []) isolates.forget(old)
  if (code !== undefined) isolates.know(key, code)
  const start = performance.now()
  const before = process.cpuUsage()
  const answers: Array<string> = []
  let characters = 0
  for (const [index, path] of paths.entries()) {
    if (index > 0 && (performance.now() - start > batchMs || characters > batchCharacters)) break
    const one = run(path, key, texts[2 * index] ?? "", texts[2 * index + 1] ?? "", wallMs)
    characters += one[0].length + one[1].length
    answers.push(...one)
  }
  const { system, user } = process.cpuUsage(before)
  answer({ type: "ran", processMs: (system + user) / 1_000 }, answers)
}

const read = makeFrameReader(([control, ...texts]) => {
  const order: Order = JSON.parse(control)
  if (order.type === "run") runBatch(order, texts)
  else answer({ type: "checked", problem: check(order.code) })
})

setInterval(isolates.sweep, 10_000).unref()

// Ctrl-C signals all processes of the terminal, but the pool decides when its children end.
process.on("SIGINT", () => {})
process.stdin.on("data", read)
process.stdin.on("end", () => process.exit(0))
answer({ type: "ready" })
