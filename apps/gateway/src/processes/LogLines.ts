import type { Readable, Writable } from "node:stream"

/** Characters of a line after which it is written in parts, so that a process cannot fill the memory of the supervisor. */
const longest = 1024 * 1024

/** A line with the number of its process: a member of a JSON line, a prefix of any other line. */
export const numbered = (line: string, id: number): string =>
  line.startsWith('{"') ? `{"process":${id},${line.slice(1)}` : line === "" ? line : `[${id}] ${line}`

/**
 * The output that several processes share. While its reader is slow, the supervisor reads nothing more from the processes. Their output waits in
 * their own pipes, and the memory of the supervisor does not grow.
 */
export class SharedOutput {
  readonly #to: Writable
  readonly #paused = new Set<Readable>()

  constructor(to: Writable) {
    this.#to = to
    to.on("drain", () => {
      for (const from of this.#paused) from.resume()
      this.#paused.clear()
    })
  }

  write(text: string, from: Readable): void {
    if (this.#to.write(text)) return
    this.#paused.add(from)
    from.pause()
  }
}

/**
 * Writes the output of one process to that of all. Whole lines are written at once, because processes that write to the same pipe would mix
 * the parts of longer lines.
 */
export const passOn = (from: Readable, to: SharedOutput, name: (line: string) => string): void => {
  let rest = ""
  from.setEncoding("utf8")
  from.on("data", (text: string) => {
    const lines = (rest + text).split("\n")
    rest = lines.pop()!
    if (rest.length > longest) {
      lines.push(rest)
      rest = ""
    }
    if (lines.length > 0) to.write(lines.map((line) => `${name(line)}\n`).join(""), from)
  })
  from.once("end", () => {
    if (rest !== "") to.write(`${name(rest)}\n`, from)
  })
}
