import {
  appendFileSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import type { History } from "./History.ts"
import type { Outcome } from "./Round.ts"
import { summarize } from "./Report.ts"

/**
 * The folder of a long run: `rounds.jsonl` with a line for each round, `summary.md` up to date after each, and a folder for each round with what
 * the processes wrote meanwhile and the history of its operations.
 */
export class RoundLogs {
  readonly folder: string
  readonly #outcomes: Array<Outcome> = []
  /** How much of each log belongs to earlier rounds. */
  readonly #read = new Map<string, number>()
  #rounds = 0

  constructor(folder: string) {
    this.folder = folder
    mkdirSync(folder, { recursive: true })
  }

  /** Stores what the processes have logged since the last call, and returns the number of the round. Call it as soon as a round is over. */
  cut(worldFolder: string, history: History | null = null): number {
    const round = ++this.#rounds
    const kept = join(this.folder, `round-${String(round).padStart(4, "0")}`)
    mkdirSync(kept, { recursive: true })
    for (const path of readdirSync(worldFolder, { recursive: true, encoding: "utf8" })) {
      if (!path.endsWith(".log")) continue
      const written = this.#since(join(worldFolder, path))
      if (written.length > 0) writeFileSync(join(kept, path.replaceAll("/", "-")), written)
    }
    if (history !== null) writeFileSync(join(kept, "history.json"), JSON.stringify(history))
    return round
  }

  /** Writes the outcome of a round. `round`: its number, if it has logs. */
  add(outcome: Outcome, round = ++this.#rounds): void {
    this.#outcomes.push(outcome)
    const { fault, figures, findings } = outcome
    appendFileSync(
      join(this.folder, "rounds.jsonl"),
      `${JSON.stringify({ round, at: new Date().toISOString(), fault: fault.name, figures, broken: findings.lines })}\n`
    )
    writeFileSync(join(this.folder, "summary.md"), summarize(this.#outcomes))
  }

  #since(path: string): Buffer {
    const file = openSync(path, "r")
    try {
      const from = this.#read.get(path) ?? 0
      const written = Buffer.alloc(Math.max(0, fstatSync(file).size - from))
      readSync(file, written, 0, written.length, from)
      this.#read.set(path, from + written.length)
      return written
    } finally {
      closeSync(file)
    }
  }
}
