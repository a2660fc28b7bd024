import type { SyntaxProblem } from "../Call.ts"
import type { Verdict } from "../Messages.ts"
import { cut, newSeed } from "./Host.ts"
import type { Isolates, Measured } from "./Isolates.ts"
import type { Ended } from "./Warm.ts"

/** Calls slower than this gain nothing from a reused context. They are not compared, so their code stays as it was decided. */
export const worthMs = 100
/** How long the second run may take: both runs together stay within the time that the pool waits for a child. */
const shadowMs = 400
const reasonBytes = 300

const inWords = (ended: Ended): string => {
  if (ended.type !== "outcome") return ended.type === "rejection" ? `${ended.name}: ${ended.message}` : ended.type
  const [code = "", name = "", message = "", line = ""] = ended.outcome
  return code === "ok" ? "well" : `${code} (${name}: ${message}${line === "" ? "" : `, line ${line}`})`
}

const isSameEnd = (left: Ended, right: Ended): boolean =>
  left.type === "outcome" && right.type === "outcome"
    ? left.outcome.length === right.outcome.length && left.outcome.every((text, at) => text === right.outcome[at])
    : inWords(left) === inWords(right)

const isSameLog = (left: Measured, right: Measured): boolean =>
  JSON.stringify([left.logs, left.warnings]) === JSON.stringify([right.logs, right.warnings])

const isSame = (left: Measured, right: Measured): boolean =>
  isSameEnd(left.ended, right.ended) && isSameLog(left, right)

const differs = (reason: string): Verdict => ({ kind: "differs", reason: cut(reason.toWellFormed(), reasonBytes) })

const difference = (fresh: Measured, sealed: Measured): string => {
  const [inFresh, inSealed] = [inWords(fresh.ended), inWords(sealed.ended)]
  if (inFresh !== inSealed) return `in a reused isolate it ends ${inSealed}, in a fresh one ${inFresh}`
  return isSameEnd(fresh.ended, sealed.ended)
    ? "what it logs is not the same in a reused isolate"
    : "what it returns is not the same in a reused isolate"
}

/**
 * Runs a call in a fresh context, whose result counts, and again in the reused context with the same clock and random numbers. The log
 * of the second run is compared and then dropped. If the runs differ, a third run, in a fresh context, tells whether the code
 * is deterministic at all.
 */
export const compare = (
  isolates: Isolates,
  key: string,
  input: string,
  body: string,
  wallMs: number
): { readonly ran: Measured | SyntaxProblem; readonly verdict: Verdict | null } => {
  const seed = newSeed()
  const fresh = isolates.run("fresh", key, input, body, wallMs, { seed, clock: "recorded" })
  const undecided = { ran: fresh, verdict: null }
  if (!("ended" in fresh) || fresh.ended.type !== "outcome" || fresh.durationMs > worthMs) return undecided
  const again = { seed, clock: fresh.tape === "" ? "live" : fresh.tape }
  const sealed = isolates.run("sealed", key, input, body, shadowMs, again)
  if (!("ended" in sealed))
    return { ran: fresh, verdict: differs(`it does not compile in strict mode: ${sealed.message}`) }
  if (isSame(fresh, sealed)) return { ran: fresh, verdict: { kind: "equal" } }
  // The run got no processor time, because the machine is busy.
  if (sealed.ended.type === "timeout" && sealed.cpuMs < shadowMs / 2) return undecided
  const third = isolates.run("fresh", key, input, body, shadowMs, again)
  const isNoisy = !("ended" in third) || !isSame(fresh, third)
  return { ran: fresh, verdict: isNoisy ? { kind: "noisy" } : differs(difference(fresh, sealed)) }
}
