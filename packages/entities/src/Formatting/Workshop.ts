import { Context, Effect, Result, Schema } from "effect"
import { availableParallelism } from "node:os"
import { getHeapStatistics } from "node:v8"
import { Worker } from "node:worker_threads"
import { readJson } from "@tidegate/json/JsonText"
import type { Failure } from "@tidegate/formatter/Formatter"
import type { Answer, Order, StepResult, StepTask, Task, TestResult, TestTask } from "@tidegate/formatter/Task"

/**
 * Runs expensive formatter work in a few worker threads. Each thread has a bounded heap of its own and runs one task at a time.
 * So memory is bounded by the number of threads, however many callers there are; a task that exhausts its heap ends only its
 * thread; and the event loop does none of the work.
 *
 * Teams take turns. The number of waiting tasks is bounded by the callers: for steps by the limit of concurrent runs, and for
 * tests here.
 */

/** The work was not begun: too many tasks wait already. */
export class WorkshopFull extends Schema.TaggedError<WorkshopFull>()("WorkshopFull", { message: Schema.String }) {}

export interface WorkshopOptions {
  /** The largest number of threads. Default: one less than there are cores, from 1 to 4. */
  readonly threads?: number
  /**
   * MiB of heap for one thread. Default: a quarter of this process's heap, shared by all threads, from 64 to 128: no operation
   * takes more than 40.
   */
  readonly heapMib?: number
  /** Tests that may wait, of one team and of all. Default 8 and 64. */
  readonly tests?: { readonly team: number; readonly process: number }
  /** Milliseconds after which a thread that has not answered is ended. Default 30 s: the operations' own limits are far below. */
  readonly longestMs?: number
  /** Milliseconds without work after which a thread ends. Default 60 s. */
  readonly idleMs?: number
}

interface Job {
  readonly team: string
  readonly task: Task
  readonly done: (ending: Ending) => void
  /** How often its thread has ended unexpectedly while it ran. */
  ends: number
}

type Ending =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "memory" }
  | { readonly kind: "time" }
  | { readonly kind: "crash" }

interface Thread {
  readonly worker: Worker
  job: Job | null
  timer: NodeJS.Timeout | null
}

const program = new URL("./worker.ts", import.meta.url)

/** Why a thread has ended unexpectedly. */
const endingOf = (error: unknown): "memory" | "crash" =>
  (error as { readonly code?: unknown } | null)?.code === "ERR_WORKER_OUT_OF_MEMORY" ? "memory" : "crash"

export class Workshop {
  readonly #max: number
  readonly #heapMib: number
  readonly #tests: { readonly team: number; readonly process: number }
  readonly #longestMs: number
  readonly #idleMs: number
  readonly #threads = new Set<Thread>()
  /** Waiting tasks by team, in the order of the teams' turns. */
  readonly #waiting = new Map<string, Array<Job>>()
  #testsOfAll = 0
  readonly #testsOf = new Map<string, number>()
  #id = 0

  constructor(options: WorkshopOptions = {}) {
    this.#max = options.threads ?? Math.min(4, Math.max(1, availableParallelism() - 1))
    const ofProcess = getHeapStatistics().heap_size_limit / 1_048_576
    this.#heapMib = options.heapMib ?? Math.round(Math.min(128, Math.max(64, ofProcess / 4 / this.#max)))
    this.#tests = options.tests ?? { team: 8, process: 64 }
    this.#longestMs = options.longestMs ?? 30_000
    this.#idleMs = options.idleMs ?? 60_000
  }

  /** The number of running threads. */
  get threads(): number {
    return this.#threads.size
  }

  /** Runs a step. When the caller is interrupted, the task is dropped; a task that has begun still runs to its end. */
  step(team: string, task: StepTask): Effect.Effect<StepResult> {
    return Effect.map(this.#carriedOut(team, task), (ending) => resultOf(ending) as StepResult)
  }

  /** Runs a step as a test. Fails closed when too many wait: the caller may repeat a test. */
  testOperation(team: string, task: TestTask): Effect.Effect<TestResult, WorkshopFull> {
    return Effect.suspend(() => {
      const own = this.#testsOf.get(team) ?? 0
      if (own >= this.#tests.team || this.#testsOfAll >= this.#tests.process) {
        return Effect.fail(new WorkshopFull({ message: "too many tests are under way; repeat the request" }))
      }
      this.#testsOf.set(team, own + 1)
      this.#testsOfAll++
      const tried = Effect.map(this.#carriedOut(team, task), (ending): TestResult => {
        const result = resultOf(ending)
        return Result.mapError(result, (failure) =>
          "fields" in failure || "operation" in failure
            ? failure
            : { ...failure, operation: operationOf(task), engine_version: "", resolved_input: null }
        ) as TestResult
      })
      return Effect.ensuring(
        tried,
        Effect.sync(() => {
          this.#testsOfAll--
          const left = this.#testsOf.get(team)! - 1
          if (left === 0) this.#testsOf.delete(team)
          else this.#testsOf.set(team, left)
        })
      )
    })
  }

  #carriedOut(team: string, task: Task): Effect.Effect<Ending> {
    return Effect.callback<Ending>((resume) => {
      const job: Job = { team, task, ends: 0, done: (ending) => resume(Effect.succeed(ending)) }
      this.#add(job, false)
      this.#dispatch()
      return Effect.sync(() => this.#remove(job))
    })
  }

  #add(job: Job, isFirst: boolean): void {
    const own = this.#waiting.get(job.team)
    if (own === undefined) this.#waiting.set(job.team, [job])
    else if (isFirst) own.unshift(job)
    else own.push(job)
  }

  #remove(job: Job): void {
    const own = this.#waiting.get(job.team)
    const at = own?.indexOf(job) ?? -1
    if (at < 0) return
    own!.splice(at, 1)
    if (own!.length === 0) this.#waiting.delete(job.team)
  }

  /** Takes the first task of the next team; the team then goes to the end of the order. */
  #next(): Job | undefined {
    for (const [team, own] of this.#waiting) {
      const job = own.shift()
      this.#waiting.delete(team)
      if (own.length > 0) this.#waiting.set(team, own)
      return job
    }
    return undefined
  }

  #dispatch(): void {
    while (this.#waiting.size > 0) {
      let free: Thread | undefined
      for (const thread of this.#threads) if (thread.job === null) free = thread
      if (free === undefined && this.#threads.size >= this.#max) return
      this.#give(free ?? this.#start(), this.#next()!)
    }
  }

  #give(thread: Thread, job: Job): void {
    if (thread.timer !== null) clearTimeout(thread.timer)
    thread.job = job
    thread.timer = setTimeout(() => this.#ended(thread, "time"), this.#longestMs)
    const order: Order = { id: ++this.#id, task: job.task }
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, and no window
    thread.worker.postMessage(JSON.stringify(order))
  }

  #start(): Thread {
    const worker = new Worker(program, {
      resourceLimits: { maxOldGenerationSizeMb: this.#heapMib, maxYoungGenerationSizeMb: 16 },
      // The thread gets nothing of the process's environment.
      env: {},
      execArgv: ["--no-warnings"],
      stdin: false
    })
    const thread: Thread = { worker, job: null, timer: null }
    this.#threads.add(thread)
    worker.unref()
    // As text: a structured clone would lose the digits of numbers beyond JavaScript's precision.
    worker.on("message", (text: string) => this.#answered(thread, readJson(text) as Answer))
    worker.on("error", (error) => this.#ended(thread, endingOf(error)))
    worker.on("exit", () => this.#ended(thread, "crash"))
    return thread
  }

  #answered(thread: Thread, answer: Answer): void {
    const { job } = thread
    clearTimeout(thread.timer ?? undefined)
    thread.job = null
    thread.timer = setTimeout(() => this.#ended(thread, "time"), this.#idleMs).unref()
    job?.done({ kind: "answered", answer })
    this.#dispatch()
  }

  /** A thread has ended, or is ended here. Its task is not started again if the task was the cause. */
  #ended(thread: Thread, kind: "memory" | "time" | "crash"): void {
    if (!this.#threads.delete(thread)) return
    clearTimeout(thread.timer ?? undefined)
    const { job } = thread
    thread.job = null
    void thread.worker.terminate()
    if (job !== null) {
      if (kind === "crash" && ++job.ends < maxEnds) this.#add(job, true)
      else job.done({ kind })
    }
    this.#dispatch()
  }
}

/** A task whose thread ends for an unknown reason is tried this many times: it may not be the cause. */
const maxEnds = 2

/** The operation is known here: only tests of known operations are expensive. */
const operationOf = ({ body }: TestTask): string =>
  (body as { readonly config: { readonly operation: string } }).config.operation

const tooDear = (code: Failure["code"], message: string): Failure => ({
  code,
  stage: code === "FORMATTER_LIMIT_EXCEEDED" ? "input" : "execution",
  message,
  details: {}
})

const resultOf = (
  ending: Ending
): Result.Result<Extract<Answer, { kind: "made" }>["value"], Extract<Answer, { kind: "refused" }>["failure"]> => {
  if (ending.kind === "memory") {
    return Result.fail(tooDear("FORMATTER_LIMIT_EXCEEDED", "the operation takes more memory than is allowed"))
  }
  if (ending.kind === "time") return Result.fail(tooDear("FORMATTER_TIMEOUT", "this takes longer than is allowed"))
  if (ending.kind === "crash") return Result.fail(tooDear("FORMATTER_INPUT_INVALID", "the operation broke down"))
  const { answer } = ending
  if (answer.kind === "made") return Result.succeed(answer.value)
  if (answer.kind === "refused") return Result.fail(answer.failure)
  return Result.fail(tooDear("FORMATTER_INPUT_INVALID", "the operation cannot handle this input"))
}

/** One pool per process: threads start with the first expensive task, and end when there is none. */
export const Workshops = Context.Reference<Workshop>("@tidegate/entities/Formatting/Workshop", {
  defaultValue: () => new Workshop()
})
