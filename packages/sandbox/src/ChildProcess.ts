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
 * How an order ended. `time` and `memory`: this module killed the child. `crash`: the child crashed. `killed`: something else ended it,
 * for example the system because memory ran out.
 */
export type Ending =
  | { readonly type: "checked"; readonly problem: SyntaxProblem | null }
  /** Results of the calls that ran, always at least the first call, and the processor time that all of them took. */
  | { readonly type: "ran"; readonly results: ReadonlyArray<Result>; readonly processMs: number }
  | { readonly type: "died"; readonly cause: "time" | "memory" | "crash" | "killed" }

export interface Result {
  readonly ran: Ran
  /** The returned body, if it differs from the one that was passed in. */
  readonly body: string
}

export interface Child {
  readonly pid: number
  /**
   * Sends an order; a child has at most one at a time. `wallMs`: time limit of the code. `isSlow`: the code is known to be slow, so
   * the child gets a low priority from the start.
   */
  readonly order: (frame: Frame, wallMs: number, isSlow: boolean, done: (ending: Ending) => void) => void
  /** Call every few milliseconds while an order is running: it lowers the priority of a slow child and kills one that exceeds its time or memory. */
  readonly watch: () => void
  /** Bytes of resident memory; null where the platform does not report them. */
  readonly residentBytes: () => number | null
  /** The priority was lowered and cannot be raised again: see `Priority`. */
  readonly isStuck: () => boolean
  /** Lets the child end once it is idle. */
  readonly retire: () => void
  /** Kills the child at once. */
  readonly kill: () => void
  readonly gone: Promise<void>
}

export interface ChildOptions {
  /** Bytes of heap that the child keeps warm between calls. */
  readonly warmBytes: number
  /** Bytes of resident memory above which the child is killed. It may exceed them only until the next watch interval. */
  readonly maxResidentBytes: number
  /** The operating system's nice value of the child while it runs slow code: higher means lower priority. */
  readonly niceness: number
  readonly onReady: () => void
  /** Called once, however the child ended; `complaint` is the end of its standard error output. */
  readonly onGone: (complaint: string) => void
}

const program = fileURLToPath(new URL("child/main.ts", import.meta.url))
const sources = fileURLToPath(new URL("child/program.mjs", import.meta.url))
const folderOf = (name: string, require: NodeJS.Require): string => dirname(realpathSync(require.resolve(name)))

/**
 * A child may read its own source and the engine. It may not write files, open sockets, or start processes or threads. Addons are
 * allowed because the engine is one. So V8 is the security boundary, and a process behind it has little worth stealing.
 *
 * TurboFan is off: its loops omit the checks by which V8 stops code, so a loop that only allocates exceeded both its time and its
 * memory; and most V8 vulnerabilities were found in it. Maglev stays on.
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
    // The loader reads it to detect the C library.
    "--allow-fs-read=/etc/alpine-release",
    `--import=${sources}`,
    program
  ]
}

let childArguments: ReadonlyArray<string> | undefined

/** A small file of /proc that is opened once and read many times. Null where it does not exist. */
const openProc = (path: string) => {
  let file: number | null = null
  try {
    file = openSync(path, "r")
  } catch {
    // Not Linux: the time limit and the isolates' own limits remain.
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

/** Tells the system to kill a child rather than the gateway when memory runs out. */
const offerToSystem = (pid: number): void => {
  try {
    writeFileSync(`/proc/${pid}/oom_score_adj`, "1000")
  } catch {
    // Not permitted, or not Linux: the system chooses.
  }
}

/** The result of a run whose headers or query have more values than are parsed. */
const tooManyValues = (): Ran => ({
  error: {
    code: "OUTPUT_TOO_LARGE",
    name: "RangeError",
    message: "there are too many headers, or too many values in the query",
    line: null
  },
  request: null,
  isUnchanged: false,
  bodyUnchanged: false,
  logs: [],
  warnings: ["its log lines are lost"],
  startedAt: Date.now(),
  durationMs: 0,
  cpuMs: 0,
  memoryBytes: 0,
  isSealed: false,
  verdict: null
})

/** Parses JSON from a child. Children run foreign code, so their output is as untrusted as a sender's. Throws if it is not JSON. */
const foreign = <A>(text: string, tooMuch: () => A): A => {
  const parsed = parseJson(text)
  if (parsed.kind === "invalid") throw new SyntaxError("not JSON")
  return parsed.kind === "json" ? (parsed.value as A) : tooMuch()
}

/** Each result is parsed by itself: if one is too large, only that one fails, not its neighbours. */
const resultsOf = (texts: ReadonlyArray<string>): ReadonlyArray<Result> =>
  Array.from({ length: texts.length / 2 }, (_, index) => ({
    ran: foreign(texts[2 * index] ?? "", tooManyValues),
    body: texts[2 * index + 1] ?? ""
  }))

/** The running order, with the child's usage when it was first measured. */
interface Out {
  readonly done: (ending: Ending) => void
  readonly wallMs: number
  readonly at: number
  readonly before: { readonly cpuMs: number | null; readonly residentBytes: number | null } | null
}

/** /proc counts 100 clock ticks a second on every Linux that Node supports. */
const tickMs = 10
const complaintBytes = 2_000
/** Signals that come from outside, not from a crash of the process. */
const fromOutside: ReadonlySet<string> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"])
/** From this time on an order counts as slow (ms; processor time where it is known). */
const quickMs = 20
/** How long a call may exceed its time without an answer: this covers compiling and the transfer of large bodies. */
const graceMs = 750

/** Starts a child. It reports by itself when it is ready. Throws if no process can be started. */
export const startChild = (options: ChildOptions): Child => {
  childArguments ??= makeArguments()
  // The same time zone everywhere, and nothing of this process's environment.
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
  /** Why this module killed the child; null if it did not. */
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
    // The process was never started.
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
      // Otherwise a child that answers without results would be sent the same batch for ever.
      if (results.length === 0) throw new SyntaxError("no results")
      finish({ type: "ran", results, processMs: answer.processMs })
    }
  })
  process_.stdout.on("data", (chunk: Buffer) => {
    try {
      read(chunk)
    } catch {
      // A child never writes such output, so this process can no longer be trusted.
      kill("crash")
    }
  })
  process_.stderr.setEncoding("utf8")
  process_.stderr.on("data", (text: string) => {
    complaint = (complaint + text).slice(-complaintBytes)
  })
  // The child ended while it was written to; the exit handler reports it.
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
      // Fast code can be as late when it waits for the processor.
      if (!isKnown || cpu - before.cpuMs >= quickMs) priority.giveWay()
      if (lateMs < callLimits.ms + graceMs) return
      // A child that got no processor time is not slow. One that used its time is not waited for any longer.
      const isUsedUp = isKnown && cpu - before.cpuMs >= callLimits.dueMs + graceMs
      if (!isUsedUp && lateMs < (isKnown ? callLimits.longestMs : wallMs) + graceMs) return
      // A garbage collector that runs out of heap looks like code that does not end.
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
