import { metrics } from "@tidegate/telemetry/Metrics"
import { callLimits } from "./CallLimits.ts"
import type { Ending, Result } from "./ChildProcess.ts"
import type { makeDecisions } from "./Decisions.ts"
import type { Job } from "./Job.ts"
import { countWorld } from "./SandboxTelemetry.ts"
import type { makeStrikes, Offence } from "./Strikes.ts"

/** A call is guilty after two crashes of its child, or after six kills from outside. */
const suspicions = { crash: 3, killed: 1 } as const
const guilty = 6

/** Mean milliseconds of a call in its batch. Processor time is used, because time spent waiting for the processor does not make code slow. */
export const slownessOf = (ending: Ending, wallMs: number): number => {
  if (ending.type !== "ran" || ending.results.length === 0) return wallMs
  const { processMs, results } = ending
  const each = Math.min(wallMs, processMs / results.length)
  return results.reduce((sum, { ran }) => sum + (ran.durationMs > 0 ? each : wallMs), 0) / results.length
}

/** Decides about the jobs of a batch that has ended: each is answered, or runs again. */
export const makeEndings = ({
  again,
  decisions,
  isClosing,
  settle,
  strikes
}: {
  /** Puts jobs back at the front of the queue. */
  readonly again: (jobs: ReadonlyArray<Job>) => void
  readonly decisions: ReturnType<typeof makeDecisions>
  readonly isClosing: () => boolean
  readonly settle: (job: Job, how: () => void) => void
  readonly strikes: ReturnType<typeof makeStrikes>
}) => {
  const finish = (startedAt: number, jobs: ReadonlyArray<Job>, ending: Ending): void => {
    if (ending.type === "died" && !isClosing()) metrics.sandboxDeaths.at(ending.cause).add()
    if (ending.type === "ran") {
      const { results } = ending
      again(jobs.filter((job, index) => !isOver(startedAt, job, results[index])))
    } else if (ending.type === "checked") for (const job of jobs) settle(job, () => job.checked(ending.problem))
    else if (jobs.length > 1) {
      // The guilty call is not known yet. Calls have no side effects, so each can run again, alone.
      for (const job of jobs) job.isAlone = true
      again(jobs)
    } else for (const job of jobs) died(startedAt, job, ending.cause)
  }

  /** Whether the job is complete; otherwise it runs again. A batch that took too long has no result for its last jobs. */
  const isOver = (startedAt: number, job: Job, result: Result | undefined): boolean => {
    if (result === undefined) return false
    const { cpuMs, error } = result.ran
    const pinned = job.key === null || job.path === "fresh" ? null : decisions.learn(job.key, result.ran)
    if (job.key !== null && decisions.isDoubtful(job.key, result.ran)) {
      job.path = "compared"
      return false
    }
    if (error?.code === "TIMEOUT" && cpuMs < callLimits.dueMs && job.wallMs < callLimits.longestMs) {
      // The machine was slow, not the code. Code has no side effects, so it can run again, with the time limit for a slow machine. If the machine
      // is fast again by then, the watch ends code that uses more than its second.
      job.wallMs = callLimits.longestMs
      job.isAlone = true
      return false
    }
    countWorld(result.ran)
    settle(job, () => job.ran(result, pinned, startedAt))
    return true
  }

  const died = (startedAt: number, job: Job, cause: Extract<Ending, { type: "died" }>["cause"]): void => {
    if (isClosing()) return settle(job, () => job.unavailable("the sandbox is shutting down"))
    if (cause === "crash" || cause === "killed") {
      // The child may have been killed from outside, together with others: a job is guilty only if its children keep dying.
      job.suspicion += suspicions[cause]
      if (job.suspicion < guilty) return again([job])
    }
    const offence: Offence = cause === "time" ? "TIMEOUT" : "MEMORY_LIMIT"
    if (job.key !== null) strikes.strike(job.key, offence)
    settle(job, () => job.killed(offence, startedAt))
  }

  return finish
}
