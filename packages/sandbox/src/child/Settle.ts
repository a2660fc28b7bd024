import type { ExecutionError, ExecutionErrorCode } from "../Call.ts"
import { callLimits } from "../CallLimits.ts"
import type { Input, Ran } from "../Messages.ts"
import { bodyFault, InvalidEnvelope, settleMembers } from "./Envelope.ts"
import type { Outcome } from "./Guest.ts"
import { cut } from "./Host.ts"
import type { Ended } from "./Warm.ts"

const errorCodes: ReadonlySet<string> = new Set<ExecutionErrorCode>([
  "RUNTIME_ERROR",
  "OUTPUT_TOO_LARGE",
  "INVALID_OUTPUT",
  "NO_HANDLER",
  "ASYNC_NOT_SUPPORTED"
])
const isErrorCode = (code: string | undefined): code is ExecutionErrorCode => code !== undefined && errorCodes.has(code)

export const failed = (
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

export type Settled = Pick<Ran, "error" | "request" | "isUnchanged" | "bodyUnchanged"> & { readonly body: string }

export const unsettled = (error: ExecutionError): Settled => ({
  error,
  request: null,
  isUnchanged: false,
  bodyUnchanged: false,
  body: ""
})

const settleOutcome = (outcome: Outcome, input: string): Settled => {
  // Untrusted texts, whatever the guest was meant to return.
  const [code, second = "", third = "", line = ""] = outcome
  if (code === "OUTPUT_TOO_LARGE") return unsettled(tooLarge)
  if (isErrorCode(code))
    return unsettled(failed(code, second, third, /^[1-9]\d{0,6}$/.test(line) ? Number(line) : null))
  if (Buffer.byteLength(second) + Buffer.byteLength(third) > callLimits.outputBytes) return unsettled(tooLarge)
  const settled = { error: null, bodyUnchanged: third === "", body: third }
  const fault = settled.bodyUnchanged ? null : bodyFault(third)
  if (fault !== null) return unsettled(failed("INVALID_OUTPUT", "RangeError", fault))
  // They are the sender's, and within the limits of the ingress.
  if (second === "") return { ...settled, request: null, isUnchanged: true }
  try {
    const { request }: Input = JSON.parse(input)
    return { ...settled, request: settleMembers(request, second), isUnchanged: false }
  } catch (error) {
    const message = error instanceof InvalidEnvelope ? error.message : "the returned request is not a JSON value"
    return unsettled(failed("INVALID_OUTPUT", "TypeError", message))
  }
}

/** Converts the end of a call into its result. */
export const settle = (ended: Ended, input: string, wallMs: number): Settled => {
  if (ended.type === "outcome") return settleOutcome(ended.outcome, input)
  if (ended.type === "timeout")
    return unsettled(failed("TIMEOUT", "TimeoutError", `the code ran for more than ${wallMs} ms`))
  if (ended.type === "memory")
    return unsettled(failed("MEMORY_LIMIT", "RangeError", `the code used more than ${callLimits.memoryMib} MiB`))
  return unsettled(failed("RUNTIME_ERROR", ended.name, `unhandled rejection: ${ended.message}`))
}
