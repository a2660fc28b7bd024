import { metrics } from "@tidegate/telemetry/Metrics"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { callLimits } from "./CallLimits.ts"
import { makeChildren } from "./Children.ts"
import { makeDecisions } from "./Decisions.ts"
import { makeEndings, slownessOf } from "./Endings.ts"
import { killedError, withoutResult } from "./Executions.ts"
import { checkJob, type Job, keyOf, runJob } from "./Job.ts"
import { batchOf, orderOf } from "./Orders.ts"
import { makeStrikes } from "./Strikes.ts"
import { makeTurns, type Turn } from "./Turns.ts"

export interface PoolOptions {
  readonly children: number
  readonly spares: number
  readonly idleMs: number
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly maxResidentBytes: number
  readonly niceness: number
  readonly firstCalls: number
}

export const makePool = (options: PoolOptions) => {
  const turns = makeTurns<Job>({
    perTeam: Math.max(1, Math.ceil(options.children / 2)),
    forSlow: Math.max(1, Math.floor(options.children / 2)),
    forUnproven: Math.max(1, options.children - 1),
    maxWaiting: options.maxWaiting,
    maxWaitingPerTeam: Math.max(1, Math.ceil(options.maxWaiting / 4))
  })
  const strikes = makeStrikes()
  const decisions = makeDecisions(options.firstCalls)
  metrics.sandboxWaiting.readBy(() => turns.waiting())
  let isClosing = false
  let isScheduled = false
  const children = makeChildren({
    ...options,
    waiting: turns.waiting,
    onFree: () => dispatchSoon(),
    onHopeless: (reason) => {
      for (const job of turns.drain()) settle(job, () => job.unavailable(reason))
    }
  })

  metrics.sandboxChildren.readBy(() => children.pids().length)

  const settle = (job: Job, how: () => void): void => {
    if (job.isSettled) return
    job.isSettled = true
    clearTimeout(job.waitTimer)
    try {
      how()
    } catch (error) {
      // Every waiting caller gets an answer, whatever a child sent: without one it would wait for ever.
      job.unavailable(`an answer could not be handed over: ${String(error)}`)
    }
  }

  const dispatch = (): void => {
    while (turns.waiting() > 0) {
      if (!children.isFree()) return children.grow()
      const turn = turns.take()
      if (turn === undefined) return
      start(turn)
    }
  }

  /**
   * Starts what may start, after the callers that are running now have put in all their calls: those of the same code then go to a
   * child together, and not the first of them alone.
   */
  const dispatchSoon = (): void => {
    if (isScheduled) return
    isScheduled = true
    queueMicrotask(() => {
      isScheduled = false
      dispatch()
    })
  }

  const start = (turn: Turn<Job>): void => {
    const { jobs, texts } = batchOf(turn, (job) => settle(job, job.unwritable))
    const [first] = jobs
    if (first === undefined) return turn.done(0)
    const member = children.take(first.key)
    const { wallMs } = first
    member.child.order(
      [JSON.stringify(orderOf(member.codes, jobs, first, decisions.path)), ...texts],
      wallMs,
      turn.isSlow,
      (ending) => {
        const { startedAt } = member
        turn.done(slownessOf(ending, Date.now() - startedAt))
        // Released before callers get their results: a caller that calls again at once must not cause another child.
        children.release(member, ending.type === "died", jobs.length)
        finish(startedAt, jobs, ending)
        dispatchSoon()
      }
    )
  }

  /** Puts jobs back at the front of the queue, in their order. */
  const again = (jobs: ReadonlyArray<Job>): void => {
    for (const job of jobs.toReversed()) {
      if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
      else turns.add(job.teamId, job.key ?? "", job, true)
    }
  }
  const finish = makeEndings({ again, decisions, isClosing: () => isClosing, settle, strikes })

  /** Puts a job in the queue. The returned function removes it if it still waits. */
  const submit = (job: Job): (() => void) => {
    const hopeless = children.hopeless()
    if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
    else if (hopeless !== null) settle(job, () => job.unavailable(hopeless))
    else if (!turns.add(job.teamId, job.key ?? "", job))
      settle(job, () => job.unavailable("too many calls are waiting"))
    else {
      if (!children.isFree()) children.grow()
      dispatchSoon()
      job.waitTimer = setTimeout(() => {
        if (turns.remove(job.teamId, job.key ?? "", job))
          settle(job, () => job.unavailable(`no child was free for ${options.maxWaitMs} ms`))
      }, options.maxWaitMs)
    }
    return () => {
      if (turns.remove(job.teamId, job.key ?? "", job)) settle(job, () => {})
    }
  }

  return {
    run: (call: Call, done: (execution: Execution) => void, unavailable: (reason: string) => void): (() => void) => {
      const refused = strikes.refusal(keyOf(call))
      if (refused === null) return submit(runJob(call, done, unavailable))
      const seconds = Math.ceil(refused.waitMs / 1_000)
      const warning = `not run: the code had to be stopped by force ${refused.count} times; it is tried again in ${seconds} s`
      metrics.sandboxCalls.at("refused").add()
      done(withoutResult(killedError(refused.offence), [warning], Date.now()))
      return () => {}
    },

    check: (
      code: string,
      done: (problem: SyntaxProblem | null) => void,
      unavailable: (reason: string) => void
    ): (() => void) => {
      if (Buffer.byteLength(code) > callLimits.codeBytes) {
        done({ message: `the code is longer than ${callLimits.codeBytes} bytes`, line: null })
        return () => {}
      }
      return submit(checkJob(code, done, unavailable))
    },

    /** Process ids of the children, for tests and metrics. */
    pids: children.pids,

    close: async (): Promise<void> => {
      isClosing = true
      for (const job of turns.drain()) settle(job, () => job.unavailable("the sandbox is shutting down"))
      await children.close()
    }
  }
}
