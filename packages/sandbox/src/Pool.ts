import { metrics } from "@tidegate/telemetry/Metrics"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { callLimits } from "./CallLimits.ts"
import type { Ending, Result } from "./ChildProcess.ts"
import { makeChildren, type Member } from "./Children.ts"
import { makeDecisions } from "./Decisions.ts"
import { killedError, withoutResult } from "./Executions.ts"
import { checkJob, type Job, keyOf, runJob } from "./Job.ts"
import type { Order } from "./Messages.ts"
import { countWait, countWorld } from "./SandboxTelemetry.ts"
import { makeStrikes } from "./Strikes.ts"
import type { Offence } from "./Strikes.ts"
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

/** Largest batch for a child: this many calls, and no further call once their texts have this many characters. */
const batchCalls = 64
const batchCharacters = 256 * 1024
/** Number of code texts that a child keeps, and their characters together. */
const maxCodes = 64
const maxCodeCharacters = 8 * 1024 * 1024
/** A call is guilty after two crashes of its child, or after six kills from outside. */
const suspicions = { crash: 3, killed: 1 } as const
const guilty = 6

/** Mean milliseconds of a call in its batch. Processor time is used, because time spent waiting for the processor does not make code slow. */
const slownessOf = (ending: Ending, wallMs: number): number => {
  if (ending.type !== "ran" || ending.results.length === 0) return wallMs
  const each = ending.results.map(({ ran }) => (ran.durationMs > 0 ? Math.min(wallMs, ran.processMs) : wallMs))
  return each.reduce((sum, ms) => sum + ms, 0) / each.length
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
  const children = makeChildren({
    ...options,
    waiting: turns.waiting,
    onFree: () => dispatch(),
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

  /** The calls of a turn that form one batch, with the texts that the child receives. */
  const batchOf = ({ item, more }: Turn<Job>): { readonly jobs: ReadonlyArray<Job>; readonly texts: Array<string> } => {
    const jobs: Array<Job> = []
    const texts: Array<string> = []
    let characters = 0
    const put = (job: Job): void => {
      clearTimeout(job.waitTimer)
      countWait(job.since)
      try {
        const own = job.texts()
        for (const text of own) characters += text.length
        texts.push(...own)
        jobs.push(job)
      } catch {
        settle(job, job.unwritable)
      }
    }
    put(item)
    const mayGoAlong = ({ isAlone }: Job): boolean =>
      !item.isAlone && !isAlone && jobs.length < batchCalls && characters < batchCharacters
    for (let job = more(mayGoAlong); job !== undefined; job = more(mayGoAlong)) put(job)
    return { jobs, texts }
  }

  const orderOf = (member: Member, jobs: ReadonlyArray<Job>, { code, key, wallMs }: Job): Order => {
    if (key === null) return { type: "check", code }
    const { codes } = member
    const isKnown = codes.delete(key)
    codes.set(key, code.length)
    let characters = 0
    for (const length of codes.values()) characters += length
    const forget: Array<string> = []
    for (const [oldest, length] of codes) {
      if ((codes.size <= maxCodes && characters <= maxCodeCharacters) || oldest === key) break
      characters -= length
      codes.delete(oldest)
      forget.push(oldest)
    }
    return {
      type: "run",
      key,
      wallMs,
      paths: jobs.map(({ path }) => path ?? decisions.path(key)),
      ...(isKnown ? {} : { code }),
      ...(forget.length > 0 ? { forget } : {})
    }
  }

  const start = (turn: Turn<Job>): void => {
    const { jobs, texts } = batchOf(turn)
    const [first] = jobs
    if (first === undefined) return turn.done(0)
    const member = children.take(first.key)
    const { wallMs } = first
    member.child.order([JSON.stringify(orderOf(member, jobs, first)), ...texts], wallMs, turn.isSlow, (ending) => {
      const { startedAt } = member
      turn.done(slownessOf(ending, Date.now() - startedAt))
      // Released before callers get their results: a caller that calls again at once must not cause another child.
      children.release(member, ending.type === "died", jobs.length)
      finish(startedAt, jobs, ending)
      dispatch()
    })
  }

  /** Puts jobs back at the front of the queue, in their order. */
  const again = (jobs: ReadonlyArray<Job>): void => {
    for (const job of jobs.toReversed()) {
      if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
      else turns.add(job.teamId, job.key ?? "", job, true)
    }
  }

  const finish = (startedAt: number, jobs: ReadonlyArray<Job>, ending: Ending): void => {
    if (ending.type === "died" && !isClosing) metrics.sandboxDeaths.at(ending.cause).add()
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
    if (isClosing) return settle(job, () => job.unavailable("the sandbox is shutting down"))
    if (cause === "crash" || cause === "killed") {
      // The child may have been killed from outside, together with others: a job is guilty only if its children keep dying.
      job.suspicion += suspicions[cause]
      if (job.suspicion < guilty) return again([job])
    }
    const offence: Offence = cause === "time" ? "TIMEOUT" : "MEMORY_LIMIT"
    if (job.key !== null) strikes.strike(job.key, offence)
    settle(job, () => job.killed(offence, startedAt))
  }

  /** Puts a job in the queue. The returned function removes it if it still waits. */
  const submit = (job: Job): (() => void) => {
    const hopeless = children.hopeless()
    if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
    else if (hopeless !== null) settle(job, () => job.unavailable(hopeless))
    else if (!turns.add(job.teamId, job.key ?? "", job))
      settle(job, () => job.unavailable("too many calls are waiting"))
    else {
      dispatch()
      if (!job.isSettled && turns.waiting() > 0) {
        job.waitTimer = setTimeout(() => {
          if (turns.remove(job.teamId, job.key ?? "", job))
            settle(job, () => job.unavailable(`no child was free for ${options.maxWaitMs} ms`))
        }, options.maxWaitMs)
      }
    }
    return () => {
      if (turns.remove(job.teamId, job.key ?? "", job)) settle(job, () => {})
    }
  }

  return {
    run: (call: Call, told: (execution: Execution) => void, untold: (reason: string) => void): (() => void) => {
      const refused = strikes.refusal(keyOf(call))
      if (refused === null) return submit(runJob(call, told, untold))
      const seconds = Math.ceil(refused.waitMs / 1_000)
      const warning = `not run: the code had to be stopped by force ${refused.count} times; it is tried again in ${seconds} s`
      metrics.sandboxCalls.at("refused").add()
      told(withoutResult(killedError(refused.offence), [warning], Date.now()))
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
