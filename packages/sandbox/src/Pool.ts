import { isTurnOver, nextTurn } from "@tidegate/model/LoopTurn"
import { metrics } from "@tidegate/telemetry/Metrics"
import type { Call, Execution, SyntaxProblem } from "./Call.ts"
import { startChild } from "./ChildProcess.ts"
import type { Child, Ending } from "./ChildProcess.ts"
import { executionOf, killedError, withoutResult } from "./Executions.ts"
import type { Frame } from "./Frame.ts"
import { callLimits } from "./CallLimits.ts"
import { type Answer, type Input, isDeeper, type Order } from "./Messages.ts"
import { countEnd, countWait } from "./SandboxTelemetry.ts"
import { makeStrikes } from "./Strikes.ts"
import type { Offence } from "./Strikes.ts"
import { makeTurns } from "./Turns.ts"

export interface PoolOptions {
  readonly children: number
  readonly spares: number
  readonly maxWaiting: number
  readonly maxWaitMs: number
  readonly maxResidentBytes: number
  readonly niceness: number
}

/** What waits for a child. It is settled once. */
interface Job {
  /** When it was put in the queue, on the monotonic clock. */
  readonly since: number
  readonly teamId: string
  /** Of the code, among those that are kept warm; null for what is not kept. */
  readonly key: string | null
  readonly frame: (member: Member, wallMs: number) => Frame
  readonly answered: (answer: Answer, body: string, startedAt: number) => void
  readonly killed: (offence: Offence, startedAt: number) => void
  /** It cannot be written as JSON: it is nested too deep, or longer than a string may be. */
  readonly unwritable: () => void
  readonly unavailable: (reason: string) => void
  waitTimer: NodeJS.Timeout | undefined
  wallMs: number
  /** What the deaths of children under it that were not decided here add up to. */
  suspicion: number
  isSettled: boolean
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
/** Levels of a request's body beyond which it is not handed over. */
const maxDepth = 4_000
/** A longer body that comes back is parsed in turn with other long work (characters). */
const parsedAtOnce = 64 * 1024
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

/** How slow a call was: what it waited for the processor says nothing of that. */
const slownessOf = (ending: Ending, wallMs: number): number =>
  ending.type === "answered" && ending.answer.type === "ran" && ending.answer.durationMs > 0
    ? Math.min(wallMs, ending.answer.processMs)
    : wallMs

export const makePool = (options: PoolOptions) => {
  const turns = makeTurns<Job>({
    perTeam: Math.max(1, Math.ceil(options.children / 2)),
    forSlow: Math.max(1, Math.floor(options.children / 2)),
    forUnproven: Math.max(1, options.children - 1),
    maxWaiting: options.maxWaiting,
    maxWaitingPerTeam: Math.max(1, Math.ceil(options.maxWaiting / 4))
  })
  const strikes = makeStrikes()
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
      start(member, turn.item, turn.done)
    }
  }
  const hasIdle = (): boolean => {
    for (const { state } of members) if (state === "idle") return true
    return false
  }

  const start = (member: Member, job: Job, done: (ms: number) => void): void => {
    clearTimeout(job.waitTimer)
    countWait(job.since)
    let frame: Frame
    try {
      frame = job.frame(member, job.wallMs)
    } catch {
      done(0)
      return settle(job, job.unwritable)
    }
    member.state = "busy"
    member.startedAt = Date.now()
    busy++
    watch ??= setInterval(() => {
      for (const { child, state } of members) if (state === "busy") child.watch()
    }, watchEveryMs)
    member.child.order(frame, job.wallMs, (ending) => {
      busy--
      if (busy === 0) {
        clearInterval(watch)
        watch = undefined
      }
      done(slownessOf(ending, Date.now() - member.startedAt))
      finish(member, job, ending)
      release(member, ending)
      dispatch()
    })
  }

  const finish = (member: Member, job: Job, ending: Ending): void => {
    if (ending.type === "answered") {
      const { answer } = ending
      const isStarved =
        answer.type === "ran" &&
        answer.error?.code === "TIMEOUT" &&
        answer.cpuMs < callLimits.dueMs &&
        job.wallMs < callLimits.longestMs
      if (isStarved && !isClosing) {
        // It was the machine that was slow. The code has no effects, so it can run again, with time for a slow machine: if
        // that is quick again, the watch ends what goes on for more than its second.
        job.wallMs = callLimits.longestMs
        turns.add(job.teamId, job.key ?? "", job, true)
        return
      }
      return settle(job, () => job.answered(answer, ending.body, member.startedAt))
    }
    if (isClosing) return settle(job, () => job.unavailable("the sandbox is shutting down"))
    metrics.sandboxDeaths.at(ending.cause).add()
    if (ending.cause === "crash" || ending.cause === "killed") {
      // Nothing else was on that child, but it may have been ended from outside, with others: only what dies again is guilty.
      job.suspicion += suspicions[ending.cause]
      if (job.suspicion < guilty) {
        turns.add(job.teamId, job.key ?? "", job, true)
        return
      }
    }
    const offence: Offence = ending.cause === "time" ? "TIMEOUT" : "MEMORY_LIMIT"
    if (job.key !== null) strikes.strike(job.key, offence)
    settle(job, () => job.killed(offence, member.startedAt))
  }

  const release = (member: Member, ending: Ending): void => {
    if (ending.type === "died") {
      member.state = "leaving"
      return
    }
    member.state = "idle"
    member.calls++
    // A call that the watch has seen, and one in many others: memory that was fragmented does not come back by itself.
    if (Date.now() - member.startedAt < watchEveryMs && member.calls % checkMemoryEvery !== 0) return
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

  const runFrame =
    (call: Call, key: string) =>
    (member: Member, wallMs: number): Frame => {
      const { body, ...request } = call.request
      const input: Input = { request, context: { ...call.context, env: call.env } }
      if (isDeeper(body, maxDepth)) throw new RangeError("too deep")
      const bodyText = JSON.stringify(body)
      const inputText = JSON.stringify(input)
      const { codes } = member
      const isKnown = codes.delete(key)
      codes.add(key)
      const forget: Array<string> = []
      for (const oldest of codes) {
        if (codes.size <= maxCodes) break
        codes.delete(oldest)
        forget.push(oldest)
      }
      const order: Order = {
        type: "run",
        key,
        wallMs,
        ...(isKnown ? {} : { code: call.code }),
        ...(forget.length > 0 ? { forget } : {})
      }
      return [JSON.stringify(order), inputText, bodyText]
    }

  return {
    run: (call: Call, told: (execution: Execution) => void, untold: (reason: string) => void): (() => void) => {
      const done = countEnd(told)
      const unavailable = countEnd(untold)
      const key = `${call.teamId} ${call.codeHash}`
      const refused = strikes.refusal(key)
      if (refused !== null) {
        const seconds = Math.ceil(refused.waitMs / 1_000)
        const warning = `not run: the code had to be stopped by force ${refused.count} times; it is tried again in ${seconds} s`
        metrics.sandboxCalls.at("refused").add()
        told(withoutResult(killedError(refused.offence), [warning], Date.now()))
        return () => {}
      }
      return submit({
        since: performance.now(),
        teamId: call.teamId,
        key,
        frame: runFrame(call, key),
        answered: (answer, body) => {
          if (answer.type !== "ran") return unavailable("a child gave the wrong answer")
          if (body.length <= parsedAtOnce) return done(executionOf(call, answer, body))
          const finish = (): void => {
            const since = performance.now()
            done(executionOf(call, answer, body))
            isTurnOver(since)
          }
          if (isTurnOver()) nextTurn(finish)
          else finish()
        },
        unwritable: () =>
          done(
            withoutResult(
              {
                code: "MEMORY_LIMIT",
                name: "RangeError",
                message: "the request is nested too deeply to be handed over",
                line: null
              },
              [],
              Date.now()
            )
          ),
        killed: (offence, startedAt) =>
          done(withoutResult(killedError(offence), ["its log lines are lost"], startedAt)),
        unavailable,
        waitTimer: undefined,
        wallMs: callLimits.ms,
        suspicion: 0,
        isSettled: false
      })
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
      return submit({
        since: performance.now(),
        // Writers of code share one team: it is they who wait when somebody checks a lot.
        teamId: "",
        key: null,
        frame: () => [JSON.stringify({ type: "check", code } satisfies Order), "", ""],
        answered: (answer) => {
          if (answer.type === "checked") done(answer.problem)
          else unavailable("a child gave the wrong answer")
        },
        killed: () => done({ message: "the code cannot be compiled within the limits", line: null }),
        unwritable: () => done({ message: "the code cannot be handed over", line: null }),
        unavailable,
        waitTimer: undefined,
        wallMs: callLimits.ms,
        suspicion: 0,
        isSettled: false
      })
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
