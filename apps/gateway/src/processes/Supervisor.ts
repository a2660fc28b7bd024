import { type ChildProcess, spawn } from "node:child_process"
import { merged } from "@tidegate/telemetry/MergedExposition"
import { Connections, faultOf, type Taker } from "./Connections.ts"
import { numbered, passOn, SharedOutput } from "./LogLines.ts"
import type { ToProcess, ToSupervisor } from "./Messages.ts"
import { lookEveryMs, SignsOfLife } from "./SignsOfLife.ts"
import { processVariable } from "./Supervised.ts"

/** Milliseconds until a process that has ended is replaced. The time grows with each replacement that ends before it is ready. */
const pauseMs = (failures: number): number => Math.min(30_000, 250 * 2 ** failures)
/** After so many failures, and if no process is left, the supervisor ends: somebody has to repair something. */
const maxFailures = 5
/** Milliseconds that a new process may take until it is ready. Migrations of a large database take longer, but only at a first start. */
const readyWithinMs = 120_000
/** How many milliseconds to wait for the metrics of all processes. */
const gatherMs = 4_000
/** Milliseconds after SIGTERM until a process is killed. It ends by itself within 14 s, unless it is frozen. */
const endWithinMs = 14_500
/** Milliseconds to read the last lines of a process that has ended. With a slow reader of the log, this could take for ever. */
const lastLinesMs = 2_000

interface Options {
  readonly count: number
  /** The settings of all processes. */
  readonly env: NodeJS.ProcessEnv
  /** Ends with everything. */
  readonly postgres: { readonly close: () => Promise<void> } | null
}

/** One of the processes. `id` is the lowest number that no other running process has. */
interface Process extends Taker {
  readonly id: number
  readonly child: ChildProcess
  readonly signs: SignsOfLife
  /** Whether it has become ready. */
  hasStarted: boolean
  /** It has been told to end, so it is not replaced. */
  isEnding: boolean
  /** True when it is ready; false when it has ended before. */
  readonly started: Promise<boolean>
  readonly ended: Promise<void>
}

/** Starts the processes of one gateway, replaces those that end, and ends with all of them. */
export class Supervisor {
  readonly #options: Options
  readonly #isPretty: boolean
  readonly #connections = new Connections()
  readonly #output = new SharedOutput(process.stdout)
  readonly #complaints = new SharedOutput(process.stderr)
  readonly #processes = new Set<Process>()
  readonly #gatherings = new Map<number, (from: Process, text: string) => void>()
  #gathered = 0
  #failures = 0
  #isEnding = false
  #isRestarting = false
  #hasWelcomed = false

  constructor(options: Options) {
    this.#options = options
    this.#isPretty = (options.env["TIDEGATE_LOG_FORMAT"] ?? (process.stdout.isTTY ? "pretty" : "json")) === "pretty"
    setInterval(() => this.#look(), lookEveryMs).unref()
  }

  /** The first process migrates the database and makes the keys; then the others start at once. */
  async start(): Promise<void> {
    const first = this.#spawn()
    if (!(await first.started)) {
      // The process has printed the reason.
      if (!this.#isEnding) await this.#leave(1)
      return
    }
    this.#fill()
  }

  /** Starts the processes that are not there. */
  #fill(): void {
    while (this.#processes.size < this.#options.count && !this.#isEnding) this.#spawn()
  }

  /** Replaces the processes one after the other. Each new one is ready before an old one ends, so requests are always accepted. */
  async restart(): Promise<void> {
    if (this.#isRestarting || this.#isEnding) return
    // The end of the first one before it is ready would be taken for a start that has failed.
    if (!this.#hasWelcomed) return this.#say("INFO", "the processes are not replaced, because they are being started")
    this.#isRestarting = true
    this.#say("INFO", "the processes are replaced one after the other")
    // Processes that are started meanwhile are not replaced.
    const all = Array.from(this.#processes)
    for (const old of all) {
      if (!this.#processes.has(old)) continue
      const successor = this.#spawn()
      if (!(await successor.started)) {
        this.#say("ERROR", "a new process did not become ready, so the others stay: the lines above say why")
        break
      }
      await this.#retire(old)
    }
    this.#isRestarting = false
    // One that had ended by itself was not replaced while a new one had its place.
    this.#fill()
  }

  async end(): Promise<void> {
    if (this.#isEnding) return
    this.#isEnding = true
    await Promise.all([...this.#processes].map((process) => this.#retire(process)))
    await this.#leave(130)
  }

  async #retire(old: Process): Promise<void> {
    // A second signal would end it before its work is finished.
    if (old.isEnding) return old.ended
    old.isEnding = true
    old.child.kill("SIGTERM")
    const tooLate = setTimeout(() => old.child.kill("SIGKILL"), endWithinMs)
    await old.ended
    clearTimeout(tooLate)
  }

  /** Kills processes that give no sign of life. They hold connections, and nothing else would replace them. */
  #look(): void {
    for (const { child, hasStarted, id, isEnding, signs } of this.#processes) {
      // A start and an end have their own time limits.
      if (!hasStarted || isEnding) continue
      signs.look()
      if (!signs.isFrozen) continue
      this.#say("ERROR", `process ${id} (pid ${child.pid}) has not answered for 30 s, and is killed`)
      child.kill("SIGKILL")
    }
  }

  async #leave(code: number): Promise<void> {
    this.#isEnding = true
    await this.#options.postgres?.close()
    process.exit(code)
  }

  /** The port of each runner: the numbers after the given one, or any free one. */
  #runnerPort(id: number): NodeJS.ProcessEnv {
    const given = Number(this.#options.env["TIDEGATE_RUNNER_PORT"] ?? 0)
    if (given > 0) return { TIDEGATE_RUNNER_PORT: String(given + id - 1) }
    // A process that looks for a free port may find the usual one free at the same time as another one.
    return id === 1 ? {} : { TIDEGATE_RUNNER_PORT: "0" }
  }

  #spawn(): Process {
    const ids = new Set([...this.#processes].map(({ id }) => id))
    let id = 1
    while (ids.has(id)) id++
    const child = spawn(process.execPath, [...process.execArgv, ...process.argv.slice(1)], {
      env: {
        ...this.#options.env,
        ...this.#runnerPort(id),
        TIDEGATE_PROCESSES: String(this.#options.count),
        TIDEGATE_LOG_FORMAT: this.#isPretty ? "pretty" : "json",
        [processVariable]: String(id)
      },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      // A terminal sends its signals to all processes of a group: only the supervisor is to decide what ends.
      detached: true
    })
    passOn(child.stdout!, this.#output, (line) => numbered(line, id))
    passOn(child.stderr!, this.#complaints, (line) => (this.#hasWelcomed ? numbered(line, id) : line))
    const starting = Promise.withResolvers<boolean>()
    const ending = Promise.withResolvers<void>()
    const tell: Taker["tell"] = (message, connection, sent) => {
      if (!child.connected) return false
      child.send(message satisfies ToProcess, connection, { keepOpen: true }, sent)
      return true
    }
    const made: Process = {
      id,
      child,
      signs: new SignsOfLife(() => void tell({ kind: "asked" })),
      hasStarted: false,
      isEnding: false,
      get isReady() {
        return this.hasStarted && !this.isEnding && !this.signs.isSilent
      },
      started: starting.promise,
      ended: ending.promise,
      tell
    }
    this.#processes.add(made)
    const tooLate = setTimeout(() => child.kill("SIGKILL"), this.#hasWelcomed ? readyWithinMs : 2 ** 31 - 1)
    child.on("message", (message: ToSupervisor) => {
      if (message.kind === "ready") {
        clearTimeout(tooLate)
        made.hasStarted = true
        this.#failures = 0
        if (!this.#hasWelcomed) process.stdout.write(message.welcome)
        this.#hasWelcomed = true
        this.#say("INFO", `process ${id} is ready (pid ${child.pid})`)
        starting.resolve(true)
      } else this.#hear(made, message)
    })
    // Emitted for a message to a process that has just ended.
    child.on("error", () => {})
    const gone = (): void => {
      if (!this.#processes.delete(made)) return
      starting.resolve(false)
      ending.resolve()
      if (!made.isEnding) this.#replace(made, child.signalCode ?? `exit code ${child.exitCode}`)
    }
    child.once("exit", () => {
      clearTimeout(tooLate)
      this.#connections.remove(made)
      setTimeout(gone, lastLinesMs)
    })
    // Now the whole output of the process has been read.
    child.once("close", gone)
    return made
  }

  #replace({ child, hasStarted, id }: Process, how: string): void {
    // If the first process ends before it is ready, a setting is wrong, and the process has printed the reason.
    if (this.#isEnding || !this.#hasWelcomed) return
    this.#say("ERROR", `process ${id} (pid ${child.pid}) has ended: ${how}`)
    if (!hasStarted) this.#failures++
    if (this.#failures >= maxFailures && this.#processes.size === 0) {
      process.stderr.write(`tidegate: no process could be started ${maxFailures} times; the lines above say why\n`)
      void this.#leave(1)
      return
    }
    setTimeout(() => {
      if (!this.#isEnding && this.#processes.size < this.#options.count) this.#spawn()
    }, pauseMs(this.#failures))
  }

  #hear(from: Process, message: Exclude<ToSupervisor, { readonly kind: "ready" }>): void {
    switch (message.kind) {
      case "alive":
        from.signs.answered()
        break
      case "listen": {
        const { at } = message
        void this.#connections.add(from, at).then(
          (address) => from.tell({ kind: "listening", at, address }),
          (error: unknown) => from.tell({ kind: "refused", at, fault: faultOf(error, at) })
        )
        break
      }
      case "stop":
        this.#connections.remove(from, message.at)
        from.tell({ kind: "stopped", at: message.at })
        break
      case "gather":
        void this.#gather().then((text) => from.tell({ kind: "gathered", id: message.id, text }))
        break
      case "metrics":
        this.#gatherings.get(message.id)?.(from, message.text)
    }
  }

  /** The metrics of all processes that answer in time. */
  #gather(): Promise<string> {
    const id = ++this.#gathered
    const texts = new Map<number, string>()
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(late)
        this.#gatherings.delete(id)
        resolve(merged(new Map([...texts].toSorted(([a], [b]) => a - b))))
      }
      const late = setTimeout(done, gatherMs)
      const asked = new Set(
        [...this.#processes].filter(({ isReady, tell }) => isReady && tell({ kind: "metrics", id }))
      )
      this.#gatherings.set(id, (from, text) => {
        texts.set(from.id, text)
        asked.delete(from)
        if (asked.size === 0) done()
      })
      if (asked.size === 0) done()
    })
  }

  /** A line of the log. The supervisor is process 0. */
  #say(level: "INFO" | "ERROR", message: string): void {
    const line = this.#isPretty
      ? message
      : JSON.stringify({ message, level, timestamp: new Date().toISOString(), annotations: {}, spans: {} })
    process.stdout.write(`${numbered(line, 0)}\n`)
  }
}
