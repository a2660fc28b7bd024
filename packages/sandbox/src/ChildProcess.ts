import { spawn } from "node:child_process"
import { closeSync, openSync, readSync, realpathSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, sep } from "node:path"
import type { Writable } from "node:stream"
import { fileURLToPath } from "node:url"
import { parseJson } from "@tidegate/json/JsonText"
import type { SyntaxProblem } from "./Call.ts"
import { childProgram } from "./ChildProgram.ts"
import { encodeFrame, makeFrameReader } from "./Frame.ts"
import type { Frame } from "./Frame.ts"
import { callLimits } from "./CallLimits.ts"
import type { Answer, Ran } from "./Messages.ts"
import { makePriority } from "./Priority.ts"

/**
 * How an order ended. `time` and `memory`: it was killed here. `crash`: the child broke down. `killed`: somebody else ended
 * it, or the system did for want of memory.
 */
export type Ending =
  | { readonly type: "checked"; readonly problem: SyntaxProblem | null }
  /** Those of its calls that were run: the first of them at least. */
  | { readonly type: "ran"; readonly results: ReadonlyArray<Result> }
  | { readonly type: "died"; readonly cause: "time" | "memory" | "crash" | "killed" }

export interface Result {
  readonly ran: Ran
  /** The body that it returned, when that is another one. */
  readonly body: string
}

export interface Child {
  readonly pid: number
  /**
   * Gives it the one order that it may have at a time. `wallMs`: when the code in it is told to stop. `isSlow`: it is known to take
   * long, and gives way from the beginning.
   */
  readonly order: (frame: Frame, wallMs: number, isSlow: boolean, done: (ending: Ending) => void) => void
  /** To be called every few milliseconds while an order is out: has it give way when it takes long, kills it over its time or its memory. */
  readonly watch: () => void
  /** Bytes of memory, as far as this platform tells. */
  readonly residentBytes: () => number | null
  /** It gives way to others, and cannot be had back: see `Priority`. */
  readonly isStuck: () => boolean
  /** Lets it end when it is idle. */
  readonly retire: () => void
  /** Ends it at once. */
  readonly kill: () => void
  readonly gone: Promise<void>
}

export interface ChildOptions {
  /** Bytes of heap that it keeps warm between calls. */
  readonly warmBytes: number
  /** Bytes of resident memory that no child exceeds for longer than the watch takes to notice. */
  readonly maxResidentBytes: number
  /** Its priority, as the system counts it, while it works for what takes long: the higher, the more it gives way. */
  readonly niceness: number
  readonly onReady: () => void
  /** Once, however it ended; `complaint` is the end of what it wrote to its standard error. */
  readonly onGone: (complaint: string) => void
}

const program = fileURLToPath(new URL("child/main.ts", import.meta.url))
const sources = fileURLToPath(new URL("child/program.mjs", import.meta.url))
const folderOf = (name: string, require: NodeJS.Require): string => dirname(realpathSync(require.resolve(name)))

/**
 * What a child may read is its own source and the engine; it may write nothing, open no socket, start no process and no
 * thread. Addons are allowed because the engine is one: what must hold is V8, and behind it there is little to take.
 *
 * TurboFan is off: its loops do without the checks by which V8 stops code, so that a loop that only allocates ran past both
 * its time and its memory; and most of V8's broken promises were found in it. Maglev stays.
 */
const makeArguments = (): ReadonlyArray<string> => {
  const require = createRequire(import.meta.url)
  const engine = folderOf("isolated-vm", require)
  const loader = folderOf("node-gyp-build", createRequire(join(engine, "package.json")))
  const readable = [dirname(dirname(program)), engine, loader].map((folder) => `--allow-fs-read=${folder}${sep}`)
  return [
    "--no-node-snapshot",
    "--no-turbofan",
    "--no-warnings",
    "--permission",
    "--allow-addons",
    ...readable,
    // By it the loader tells which C library it runs on.
    "--allow-fs-read=/etc/alpine-release",
    `--import=${sources}`,
    program
  ]
}

let childArguments: ReadonlyArray<string> | undefined

/** A small file of /proc, read again and again without opening it. Null where there is none. */
const openProc = (path: string) => {
  let file: number | null = null
  try {
    file = openSync(path, "r")
  } catch {
    // Not Linux: the deadline and the isolates' own limits remain.
  }
  const buffer = Buffer.alloc(4_096)
  return {
    read: (): string | null => {
      if (file === null) return null
      try {
        return buffer.toString("latin1", 0, readSync(file, buffer, 0, buffer.length, 0))
      } catch {
        return null
      }
    },
    close: (): void => {
      if (file !== null) closeSync(file)
      file = null
    }
  }
}

/** Under pressure the system takes a child before it takes the gateway. */
const offerToSystem = (pid: number): void => {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000")
  } catch {
    // Not allowed or not Linux: it takes whom it likes.
  }
}

/** What a run comes to whose headers or query are more than is read of it. */
const tooManyValues = (): Ran => ({
  error: {
    code: "OUTPUT_TOO_LARGE",
    name: "RangeError",
    message: "there are too many headers, or too many values in the query",
    line: null
  },
  request: null,
  bodyUnchanged: false,
  logs: [],
  warnings: ["its log lines are lost"],
  startedAt: Date.now(),
  durationMs: 0,
  cpuMs: 0,
  processMs: 0,
  memoryBytes: 0,
  isSealed: false,
  verdict: null
})

/** From a process that runs the code of strangers: as foreign as what they send. Throws for what is not JSON. */
const foreign = <A>(text: string, tooMuch: () => A): A => {
  const parsed = parseJson(text)
  if (parsed.kind === "invalid") throw new SyntaxError("not JSON")
  return parsed.kind === "json" ? (parsed.value as A) : tooMuch()
}

/** Each is read by itself: one that is more than is read is one result, not those beside it. */
const resultsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Result> =>
  Array.from({ length: texts.length / 2 }, (_, index) => ({
    ran: foreign(texts[2 * index] ?? "", tooManyValues),
    body: texts[2 * index + 1] ?? ""
  }))

/** The order that is out, with what the child had used when it was first looked at. */
interface Out {
  readonly done: (ending: Ending) => void
  readonly wallMs: number
  readonly at: number
  readonly before: { readonly cpuMs: number | null; readonly residentBytes: number | null } | null
}

/** Clock ticks of /proc are 100 a second on every Linux that Node runs on. */
const tickMs = 10
const complaintBytes = 2_000
/** Signals that a process does not give itself when it breaks down. */
const fromOutside: ReadonlySet<string> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
/** From here on an order is not quick (ms, of the processor where that is known). */
const quickMs = 20
/** How long beyond its time a call may go without an answer: compiling, and the passage of large bodies, are in it. */
const graceMs = 750

/** Starts a child. It counts as ready when it says so. Throws when no process can be started at all. */
export const startChild = (options: ChildOptions): Child => {
  childArguments ??= makeArguments()
  // One time zone everywhere, and nothing of this process' environment.
  const env = { TZ: "UTC" }
  const process_ = spawn(process.execPath, [...childArguments, String(options.warmBytes)], {
    stdio: ["pipe", "pipe", "pipe", "pipe"],
    env
  })
  const pid = process_.pid ?? 0
  offerToSystem(pid)
  const priority = makePriority(pid, options.niceness)
  const status = openProc(`/proc/${pid}/status`)
  const stat = openProc(`/proc/${pid}/stat`)
  let out: Out | undefined
  /** Why it was killed here; null when it was not. */
  let reason: "time" | "memory" | "crash" | null = null
  let complaint = ""
  let isGone = false

  const cpuMs = (): number | null => {
    // The second field is the name in brackets; utime and stime are the 14th and the 15th.
    const fields = stat.read()?.split(") ")[1]?.split(" ")
    return fields === undefined ? null : (Number(fields[11]) + Number(fields[12])) * tickMs
  }
  const residentBytes = (): number | null => {
    const kib = /VmRSS:\s*(\d+)/.exec(status.read() ?? "")?.[1]
    return kib === undefined ? null : Number(kib) * 1_024
  }
  const kill = (why: typeof reason): void => {
    reason ??= why
    process_.kill("SIGKILL")
  }
  const finish = (ending: Ending): void => {
    const current = out
    out = undefined
    current?.done(ending)
  }

  const gone = new Promise<void>((resolve) => {
    const end = (): void => {
      if (isGone) return
      isGone = true
      status.close()
      stat.close()
      const isFromOutside = process_.signalCode !== null && fromOutside.has(process_.signalCode)
      finish({ type: "died", cause: reason ?? (isFromOutside ? "killed" : "crash") })
      options.onGone(complaint)
      resolve()
    }
    process_.on("exit", end)
    // It was never started.
    process_.on("error", (error) => {
      complaint ||= error.message
      if (process_.pid === undefined) end()
    })
  })
  const read = makeFrameReader(([control, ...texts]) => {
    const answer = foreign<Answer>(control, () => {
      throw new SyntaxError("not an answer")
    })
    if (answer.type === "ready") options.onReady()
    else if (answer.type === "checked") finish(answer)
    else {
      const results = resultsOf(texts)
      // What runs nothing of a batch would be given it again and again.
      if (results.length === 0) throw new SyntaxError("no results")
      finish({ type: "ran", results })
    }
  })
  process_.stdout.on("data", (chunk: Buffer) => {
    try {
      read(chunk)
    } catch {
      // Not what a child says: it is not one of ours any more.
      kill("crash")
    }
  })
  process_.stderr.setEncoding("utf8")
  process_.stderr.on("data", (text: string) => {
    complaint = (complaint + text).slice(-complaintBytes)
  })
  // It ended while it was written to; its exit tells.
  process_.stdin.on("error", () => {})
  process_.stdout.on("error", () => {})
  const sent = process_.stdio[3] as Writable
  sent.on("error", () => {})
  childProgram().then(
    (text) => sent.end(text),
    (error: unknown) => {
      complaint = String(error)
      kill("crash")
    }
  )

  return {
    pid,
    order: (frame, wallMs, isSlow, done) => {
      if (isSlow) priority.giveWay()
      else priority.goFirst()
      out = { done, wallMs, at: performance.now(), before: null }
      process_.stdin.write(encodeFrame(frame))
    },
    watch: () => {
      if (out === undefined || isGone) return
      const resident = residentBytes()
      if (resident !== null && resident > options.maxResidentBytes) return kill("memory")
      const { at, wallMs, before } = (out = {
        ...out,
        before: out.before ?? { cpuMs: cpuMs(), residentBytes: resident }
      })
      const lateMs = performance.now() - at
      if (lateMs < quickMs) return
      const cpu = cpuMs()
      const isKnown = cpu !== null && typeof before?.cpuMs === "number"
      // A quick one that others keep waiting may be as late.
      if (!isKnown || cpu - before.cpuMs >= quickMs) priority.giveWay()
      if (lateMs < callLimits.ms + graceMs) return
      // A child that got no time to run is not slow, and one that has had it is not waited for any longer.
      const isUsedUp = isKnown && cpu - before.cpuMs >= callLimits.dueMs + graceMs
      if (!isUsedUp && lateMs < (isKnown ? callLimits.longestMs : wallMs) + graceMs) return
      // The collector at work on what does not fit looks like code that does not end.
      const grownBytes = (resident ?? 0) - (before?.residentBytes ?? resident ?? 0)
      kill(grownBytes > 2 * callLimits.memoryMib * 1_048_576 ? "memory" : "time")
    },
    residentBytes,
    isStuck: priority.isStuck,
    retire: () => process_.stdin.end(),
    kill: () => kill(null),
    gone
  }
}
