import { readFile } from "node:fs/promises"

/** The keys that people press while a command runs. */

/** Keys that the terminal itself turns into signals, unless a program reads each key. */
const signals: Readonly<Record<string, NodeJS.Signals>> = {
  "\u0003": "SIGINT",
  "\u001c": "SIGQUIT",
  "\u001a": "SIGTSTP"
}

/**
 * Whether this program is in the foreground of its terminal. One that the shell has started in the background would be stopped as soon as it
 * changed the terminal. Only Linux says so; elsewhere it counts as in the foreground.
 */
const isInForeground = async (): Promise<boolean> => {
  const stat = await readFile("/proc/self/stat", "utf8").catch(() => null)
  if (stat === null) return true
  // The name of the program, in brackets, may have spaces.
  const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return group === foreground
}

/** Whether keys can be read: both ends are a terminal, and it is this program's turn. */
export const hasKeys = async (): Promise<boolean> =>
  process.stdin.isTTY && process.stdout.isTTY && (await isInForeground())

/**
 * Calls `press` with each key. The terminal stops showing what is typed, and shows it again when the returned function is called, when the
 * program is suspended, and on any way out of the process that Node sees: at its end, after a signal, and after an exception that
 * nobody caught.
 */
export const readKeys = (press: (key: string) => void): (() => void) => {
  const { stdin } = process
  const set = (isRaw: boolean): void => {
    try {
      stdin.setRawMode(isRaw)
    } catch {
      // The terminal is gone: there is nothing to restore.
    }
  }
  const restore = (): void => set(false)
  const resume = (): void => set(true)
  const read = (keys: Buffer): void => {
    for (const key of keys.toString("latin1")) {
      const signal = signals[key]
      if (signal === undefined) press(key)
      else {
        // These two end or suspend the program without another word.
        if (signal !== "SIGINT") restore()
        process.kill(process.pid, signal)
      }
    }
  }
  resume()
  stdin.on("data", read)
  // Reading from a terminal that is gone fails; SIGHUP ends the program.
  stdin.on("error", () => undefined)
  process.on("exit", restore)
  process.on("SIGCONT", resume)
  return () => {
    restore()
    stdin.off("data", read)
    stdin.pause()
    process.off("exit", restore)
    process.off("SIGCONT", resume)
  }
}
