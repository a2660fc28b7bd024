import { now, sleep } from "../../support/Waiting.ts"
import { type Fault, quiet, takeOverMs } from "../Fault.ts"

/**
 * Retries are due by the clock of the process that wrote them. If its clock is ahead when it writes them, they are due too late, by the same amount,
 * when the clock is correct again.
 */
export const clockJump = (seconds: number): Fault => ({
  name: `the clock of runner-1 jumps ${seconds > 0 ? "ahead" : "back"} by ${Math.abs(seconds)} s, and back to right after 5 s`,
  topology: "clock",
  ingressStaysUp: true,
  inflict: async ({ cluster }) => {
    const clock = cluster.part("clock")
    const at = now()
    await clock.jump(seconds)
    await sleep(5_000)
    await clock.jump(0)
    return { recoverableAt: at, limitMs: takeOverMs + Math.abs(seconds) * 1_000, ...quiet, clocksJumped: true }
  }
})
