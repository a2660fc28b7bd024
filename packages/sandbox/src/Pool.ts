import { metrics } from "@tidegate/telemetry/Metrics"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { callLimits } from "./CallLimits.ts"
import { startChild } from "./ChildProcess.ts"
import type { Child, Ending, Result } from "./ChildProcess.ts"
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
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly maxResidentBytes: number
  readonly niceness: number
  readonly firstCalls: number
}

/** A child and what the pool knows of it. */
interface Member {
  readonly child: Child
  /** Keys of the code that it was sent, the last used last. */
  readonly codes: Set<string>
  state: "starting" | "idle" | "busy" | "leaving"
  startedAt: number
  calls: number
}

/**
 * Bytes of heap that is kept warm, by one child and by all together. A process comes to about 80 MiB and this and a third:
 * 200 transformations in turn keep the default pool, the gateway's own memory included, under 1 GiB.
 */
const warmBytesOfOne = 64 * 1_048_576
const warmBytesOfAll = 128 * 1_048_576
/** What goes to a child at once: so many calls, and no more of them when their texts have so many characters. */
const batchCalls = 64
const batchCharacters = 256 * 1024
/** Code texts that a child keeps. */
const maxCodes = 64
const watchEveryMs = 10
/** An idle child that holds more than this part of what it may is replaced. */
const leaveAt = 0.6
const checkMemoryEvery = 64
/** Two children that broke down under a call prove it guilty, or six that were killed by others. */
const suspicions = { crash: 3, killed: 1 } as const
const guilty = 6
const firstRestartMs = 50
const longestRestartMs = 5_000
/** Starts that fail in a row before calls are told so rather than kept waiting. */
const hopeless = 3

/** How slow a call was, in the mean of its batch: what it waited for the processor says nothing of that. */
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
  const members = new Set<Member>()
  let busy = 0
  let isClosing = false
  let failedStarts = 0
  let complaint = ""
  let restart: NodeJS.Timeout | undefined
  let watch: NodeJS.Timeout | undefined

  const settle = (job: Job, how: () => void): void => {
    if (job.isSettled) return
    job.isSettled = true
    clearTimeout(job.waitTimer)
    try {
      how()
    } catch (error) {
      // Whoever waits is told something, whatever a child said: without an answer he would wait for ever.
      job.unavailable(`an answer could not be handed over: ${String(error)}`)
    }
  }

  const add = (): void => {
    let isReady = false
    const member: Member = {
      child: startChild({
        maxResidentBytes: options.maxResidentBytes,
        niceness: options.niceness,
        warmBytes: Math.min(warmBytesOfOne, Math.floor(warmBytesOfAll / options.children)),
        onReady: () => {
          isReady = true
          failedStarts = 0
          member.state = "idle"
          dispatch()
        },
        onGone: (itsComplaint) => {
          members.delete(member)
          if (!isReady) {
            failedStarts++
            complaint = itsComplaint
            if (failedStarts >= hopeless) giveUp()
          }
          fill()
        }
      }),
      codes: new Set(),
      state: "starting",
      startedAt: Date.now(),
      calls: 0
    }
    members.add(member)
  }

  /** Starts what is missing, at once after a death, with growing pauses while starting fails. */
  const fill = (): void => {
    if (isClosing || restart !== undefined) return
    const pauseMs = failedStarts === 0 ? 0 : Math.min(longestRestartMs, firstRestartMs * 2 ** failedStarts)
    const start = (): void => {
      restart = undefined
      if (isClosing) return
      while (staying() < options.children + options.spares) add()
    }
    if (pauseMs === 0) start()
    else restart = setTimeout(start, pauseMs)
  }

  const staying = (): number => {
    let count = 0
    for (const { state } of members) if (state !== "leaving") count++
    return count
  }

  const giveUp = (): void => {
    const reason = `no sandbox process can be started: ${complaint.slice(0, 300)}`
    for (const job of turns.drain()) settle(job, () => job.unavailable(reason))
  }

  /**
   * An idle child for the code: one that has it warm, else the used one with the least code, else a new one: the last child
   * stays unused, ready to take the place of one that dies.
   */
  const choose = (key: string | null): Member | undefined => {
    let best: Member | undefined
    let used = 0
    for (const member of members) {
      if (member.codes.size > 0) used++
      if (member.state !== "idle") continue
      if (key !== null && member.codes.has(key)) return member
      if (best === undefined || rank(member) < rank(best)) best = member
    }
    // Filling up the pool with code comes before loading one child with all of it.
    if (used < options.children)
      for (const member of members) if (member.state === "idle" && member.codes.size === 0) return member
    return best
  }
  const rank = ({ codes }: Member): number => (codes.size === 0 ? Number.POSITIVE_INFINITY : codes.size)

  const dispatch = (): void => {
    while (busy < options.children) {
      if (!hasIdle()) return
      const turn = turns.take()
      if (turn === undefined) return
      const member = choose(turn.item.key)
      if (member === undefined) return
      start(member, turn)
    }
  }
  const hasIdle = (): boolean => {
    for (const { state } of members) if (state === "idle") return true
    return false
  }

  /** The calls of a turn that go to a child together, with what it is given of each. */
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
    codes.add(key)
    const forget: Array<string> = []
    for (const oldest of codes) {
      if (codes.size <= maxCodes) break
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

  const start = (member: Member, turn: Turn<Job>): void => {
    const { jobs, texts } = batchOf(turn)
    const [first] = jobs
    if (first === undefined) return turn.done(0)
    member.state = "busy"
    member.startedAt = Date.now()
    busy++
    watch ??= setInterval(() => {
      for (const { child, state } of members) if (state === "busy") child.watch()
    }, watchEveryMs)
    const { wallMs } = first
    member.child.order([JSON.stringify(orderOf(member, jobs, first)), ...texts], wallMs, (ending) => {
      busy--
      if (busy === 0) {
        clearInterval(watch)
        watch = undefined
      }
      turn.done(slownessOf(ending, Date.now() - member.startedAt))
      finish(member, jobs, ending)
      release(member, ending, jobs.length)
      dispatch()
    })
  }

  /** Puts jobs back to the front, in their order. */
  const again = (jobs: ReadonlyArray<Job>): void => {
    for (const job of jobs.toReversed()) {
      if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
      else turns.add(job.teamId, job.key ?? "", job, true)
    }
  }

  const finish = (member: Member, jobs: ReadonlyArray<Job>, ending: Ending): void => {
    if (ending.type === "died" && !isClosing) metrics.sandboxDeaths.at(ending.cause).add()
    if (ending.type === "ran") {
      const { results } = ending
      again(jobs.filter((job, index) => !isOver(member, job, results[index])))
    } else if (ending.type === "checked") for (const job of jobs) settle(job, () => job.checked(ending.problem))
    else if (jobs.length > 1) {
      // Which of them it was is not known yet. They have no effects, so each can run again, by itself.
      for (const job of jobs) job.isAlone = true
      again(jobs)
    } else for (const job of jobs) died(member, job, ending.cause)
  }

  /** Whether that is how the job ends; else it runs again. A batch that took too long has no result for those at its end. */
  const isOver = (member: Member, job: Job, result: Result | undefined): boolean => {
    if (result === undefined) return false
    const { cpuMs, error } = result.ran
    const pinned = job.key === null || job.path === "fresh" ? null : decisions.learn(job.key, result.ran)
    if (job.key !== null && decisions.isDoubtful(job.key, result.ran)) {
      job.path = "compared"
      return false
    }
    if (error?.code === "TIMEOUT" && cpuMs < callLimits.dueMs && job.wallMs < callLimits.longestMs) {
      // It was the machine that was slow. The code has no effects, so it can run again, with time for a slow machine: if
      // that is quick again, the watch ends what goes on for more than its second.
      job.wallMs = callLimits.longestMs
      job.isAlone = true
      return false
    }
    countWorld(result.ran)
    settle(job, () => job.ran(result, pinned, member.startedAt))
    return true
  }

  const died = (member: Member, job: Job, cause: Extract<Ending, { type: "died" }>["cause"]): void => {
    if (isClosing) return settle(job, () => job.unavailable("the sandbox is shutting down"))
    if (cause === "crash" || cause === "killed") {
      // It may have been ended from outside, with others: only what dies again is guilty.
      job.suspicion += suspicions[cause]
      if (job.suspicion < guilty) return again([job])
    }
    const offence: Offence = cause === "time" ? "TIMEOUT" : "MEMORY_LIMIT"
    if (job.key !== null) strikes.strike(job.key, offence)
    settle(job, () => job.killed(offence, member.startedAt))
  }

  const release = (member: Member, ending: Ending, calls: number): void => {
    if (ending.type === "died") {
      member.state = "leaving"
      return
    }
    member.state = "idle"
    member.calls += calls
    // After what the watch has seen, and after many other calls: memory that was fragmented does not come back by itself.
    if (Date.now() - member.startedAt < watchEveryMs && member.calls < checkMemoryEvery) return
    member.calls = 0
    if ((member.child.residentBytes() ?? 0) > options.maxResidentBytes * leaveAt) {
      member.state = "leaving"
      member.child.retire()
      fill()
    }
  }

  /** Puts a job in the queue; what is returned takes it out again if it still waits. */
  const submit = (job: Job): (() => void) => {
    if (isClosing) settle(job, () => job.unavailable("the sandbox is shutting down"))
    else if (failedStarts >= hopeless)
      settle(job, () => job.unavailable(`no sandbox process can be started: ${complaint.slice(0, 300)}`))
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

    start: fill,

    /** Process ids of the children, for tests and figures. */
    pids: (): ReadonlyArray<number> => [...members].map(({ child }) => child.pid),

    close: async (): Promise<void> => {
      isClosing = true
      clearTimeout(restart)
      for (const job of turns.drain()) settle(job, () => job.unavailable("the sandbox is shutting down"))
      const all = [...members]
      for (const { child } of all) child.kill()
      await Promise.all(all.map(({ child }) => child.gone))
      clearInterval(watch)
    }
  }
}
