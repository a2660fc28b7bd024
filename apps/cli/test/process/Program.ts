import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { withoutSettings } from "../../../../test/support/GatewayProcess.ts"

/** The command line's sources, to be run by this Node. */
export const source = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly said: string
  readonly complained: string
}

/** One run of the command line. */
export class Run {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  #said = ""
  #complained = ""
  /** It has ended, and all that it has said has come. */
  #isOver = false
  readonly #waiting = new Set<() => void>()

  constructor(program: ReadonlyArray<string>, words: ReadonlyArray<string>, options: RunOptions) {
    const [command = "", ...before] = program
    this.child = spawn(command, [...before, ...words], {
      cwd: options.cwd,
      env: { ...withoutSettings(), NO_COLOR: "", ...options.env },
      stdio: ["pipe", "pipe", "pipe"]
    })
    this.child.stdout!.on("data", (data: Buffer) => this.#hear(() => (this.#said += data.toString())))
    this.child.stderr!.on("data", (data: Buffer) => this.#hear(() => (this.#complained += data.toString())))
    this.child.stdin!.on("error", () => undefined)
    if (options.isTyping !== true) this.child.stdin!.end(options.input ?? "")
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code) => {
        this.#isOver = true
        resolve({ code, said: this.#said, complained: this.#complained })
        this.#hear(() => undefined)
      })
    })
  }

  #hear(change: () => void): void {
    change()
    for (const look of this.#waiting) look()
  }

  /** The first line on standard output that fits. Fails when it ends without one. */
  line(fits: (line: string) => boolean): Promise<string> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = this.#said.split("\n").slice(0, -1).find(fits)
        if (found === undefined && !this.#isOver) return
        this.#waiting.delete(look)
        if (found !== undefined) resolve(found)
        else reject(new Error(`it ended without that line: ${this.#said}${this.#complained}`))
      }
      this.#waiting.add(look)
      look()
    })
  }

  /** Types on the keyboard of a program that was started with `isTyping`. */
  press(keys: string): void {
    this.child.stdin!.write(keys)
  }

  interrupt(signal: NodeJS.Signals = "SIGINT"): Promise<Ended> {
    this.child.kill(signal)
    return this.ended
  }
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  /** Standard input stays open for `press`. */
  readonly isTyping?: boolean
  readonly cwd?: string
  /** What is run instead of the sources. */
  readonly program?: ReadonlyArray<string>
}

export const start = (words: ReadonlyArray<string>, options: RunOptions = {}): Run =>
  new Run(options.program ?? [process.execPath, source], words, options)

export const run = (words: ReadonlyArray<string>, options: RunOptions = {}): Promise<Ended> =>
  start(words, options).ended
